(function () {
'use strict';
var d = document, root = d.documentElement, lang = root.lang === 'en' ? 'en-GB' : root.lang;
var url = root.getAttribute('data-position'), ask = root.getAttribute('data-ask'),
  list = d.getElementsByTagName('dl')[0];
var sent = root.hasAttribute('data-post');
// Server clock minus local clock; only the server's time matters.
var shift = Number(root.getAttribute('data-now')) - Date.now();
var timer, due = 0, run = 0, busy = false, fails = 0, inside = false;
var said = {}, saidAt = 0, target = 0, bounced = false;
var stream, mute = 0, way = {};
// Sent back here right after an admission: the ticket got lost. Avoid a reload loop.
try {
  bounced = Date.now() - Number(sessionStorage.getItem(url)) < 5000;
} catch (x) { /* may be forbidden */ }

function el(id) { return d.getElementById(id); }
function at(id) { return Number(el(id).getAttribute('data-at')); }
function text(name) { return d.body.getAttribute('data-' + name); }
function put(id, words) {
  var e = el(id);
  if (e && e.textContent !== words) e.textContent = words;
}
// Hides a line whose value is null.
function line(id, words) {
  var e = el(id), box = e && (e.tagName === 'DD' || e.tagName === 'SPAN') ? e.parentNode : e;
  if (!e) return;
  box.hidden = words == null;
  if (words != null) put(id, words);
}
// Server times are UTC. The page shows them in the visitor's zone, with its name.
function local(id, at, day) {
  var e = el(id), form = { hour: '2-digit', minute: '2-digit', timeZoneName: 'short' };
  if (!e || !at) return;
  if (day) { form.weekday = form.month = 'long'; form.day = form.year = 'numeric'; }
  if (!day || at % 60000) form.second = '2-digit';
  try {
    put(id, new Date(at).toLocaleString(lang + '-u-nu-latn', form));
    e.setAttribute('datetime', new Date(at).toISOString());
  } catch (x) { /* the UTC text stays */ }
}
function two(n) { return (n < 10 ? '0' : '') + n; }
function tick() {
  if (!target) return;
  var s = Math.ceil((target - Date.now() - shift) / 1000);
  if (s <= 0) put('left', text('soon'));
  // From two days on, the server's words are easier to read than hours.
  else if (s < 172800) put('left',
    two(Math.floor(s / 3600)) + ':' + two(Math.floor(s / 60) % 60) + ':' + two(s % 60));
}

// Announces to screen readers a change of the reason, the message or the estimate, and that a tenth
// of the people ahead is gone. Changing numbers are announced at most once a minute.
function speak(c, w) {
  var now = Date.now(), ahead = c.peopleAhead, words;
  if (c.reason !== said.reason || w.message !== said.message) words = [w.heading + '.',
    w.reason, w.message];
  else if (now - saidAt < 60000) return;
  else if (w.wait !== said.wait || (ahead != null && ahead <= said.ahead * 0.9)) {
    words = [label('ahead', w.ahead), label('wait', w.wait)];
  } else return;
  if (said.reason) put('say', words.filter(Boolean).join(' '));
  said = { reason: c.reason, message: w.message, wait: w.wait, ahead: ahead };
  saidAt = now;
}
function label(id, words) {
  return words && el(id).parentNode.firstChild.textContent + ': ' + words + '.';
}

// Shows the part of the queue that is behind this visitor. It never shrinks, and survives the tab.
function walked(c, w) {
  var key = 'anteroom ' + url.split('&')[0], ahead = c.peopleAhead,
    since = w.since && w.since.atMs;
  try { way = JSON.parse(localStorage.getItem(key)) || way; } catch (x) { /* may be forbidden */ }
  if (way.since !== since) way = { since: since, from: 0, part: 0 };
  if (ahead > way.from) way.from = ahead;
  if (ahead != null && way.from) way.part = Math.max(way.part, 1 - ahead / way.from);
  try { localStorage.setItem(key, JSON.stringify(way)); } catch (x) { /* may be forbidden */ }
  el('way').parentNode.hidden = !since || ahead == null || !way.part;
  el('bar').value = way.part * 100;
  put('part', Math.floor(way.part * 100) + '\u00a0%');
}
function show(c, w) {
  put('heading', w.heading);
  put('reason', w.reason);
  line('message', w.message);
  line('order', w.order); line('kept', w.kept);
  line('ahead', w.ahead); line('waiting', w.waiting); line('wait', w.wait); line('moved', w.moved);
  walked(c, w);
  target = w.until ? w.until.moment.atMs : 0;
  el('left').parentNode.parentNode.hidden = !target;
  if (target) {
    put('until-label', w.until.label); put('left', w.until.left);
    local('until', target, true); tick();
  }
  el('since').parentNode.parentNode.hidden = !w.since;
  if (w.since) local('since', w.since.atMs);
  if (w.updated) { shift = w.updated.atMs - Date.now(); local('updated', w.updated.atMs); }
  list.hidden = el('check').hidden = false;
  d.title = w.title;
  speak(c, w);
}

// Browsers without cookies may claim to have them, so one is tried. No room's name has a dot.
function keepsCookies() {
  var probe = '__anteroom_.=1', kept = false;
  try {
    d.cookie = probe + ';SameSite=Lax';
    kept = d.cookie.indexOf(probe) >= 0;
    d.cookie = probe + ';Max-Age=0';
  } catch (x) { /* forbidden: no cookies */ }
  return kept;
}

// Loads the page by GET: a form must not be sent again without the visitor.
function go() {
  if (sent) location.replace(location.href.split('#')[0]);
  else location.reload();
}
function enter() {
  var next = text(bounced ? 'again' : 'now');
  inside = true;
  target = 0;
  clearTimeout(timer);
  listen(false);
  if (bounced) el('cookies').hidden = false;
  d.title = text('turn');
  put('heading', d.title);
  put('reason', next + (sent ? ' ' + text('send') : ''));
  list.hidden = true;
  line('order', null); line('kept', null);
  el('check').hidden = true;
  put('live', '');
  put('say', d.title + '. ' + next);
  setTimeout(function () {
    try { sessionStorage.setItem(url, Date.now()); } catch (x) { /* may be forbidden */ }
    go();
  }, bounced ? 20000 : 1500);
}

// Near the front, server-sent events tell the page when to poll. Only visible pages open a stream:
// browsers open few connections to a site, and many tabs would use them up. Polling goes on.
function listen(wanted) {
  if (stream && (!wanted || d.hidden)) { stream.close(); stream = null; }
  if (stream || !wanted || d.hidden || !window.EventSource || Date.now() < mute) return;
  stream = new EventSource(url.replace('/position?', '/events?'));
  stream.addEventListener('ask', function () { check(); });
  stream.addEventListener('end', function () { listen(false); });
  stream.onerror = function () { mute = Date.now() + 30000; listen(false); };
}

function plan(ms) {
  clearTimeout(timer);
  due = Date.now() + ms;
  timer = setTimeout(check, ms);
}
function failed() {
  var words = text(navigator.onLine === false ? 'offline' : 'cut') + ' ' + text('safe');
  fails++;
  put('live', words);
  put('say', words);
  plan(Math.min(60000, 2000 * Math.pow(2, Math.min(fails, 5))) * (0.5 + Math.random() / 2));
}
function check(asked) {
  if (busy || inside) return;
  var mine = ++run, guard;
  function end(ok, answer) {
    if (mine !== run) return;
    run++;
    busy = false;
    clearTimeout(guard);
    var c = answer && answer.cfWaitingRoom;
    if (!answer || (!c && !ok)) return failed();
    if (!c || c.inWaitingRoom === false) return enter();
    try { show(c, answer.words); } catch (x) { return failed(); }
    var words = text(asked === true ? 'checked' : 'live');
    put('live', words);
    if (asked === true || fails) put('say', words);
    fails = 0;
    listen(answer.push);
    // A position is kept only while polls come in time, so no jitter is added to the server's own.
    if (answer.askAfterMs != null) plan(Math.max(1000, answer.askAfterMs));
  }
  busy = true;
  clearTimeout(timer);
  guard = setTimeout(end, 15000);
  fetch(url, {
    credentials: 'same-origin', cache: 'no-store', headers: { Accept: 'application/json' }
  })
    .then(function (r) { return r.json().then(function (answer) { end(r.ok, answer); }); })
    .then(null, function () { end(); });
}
function wake() { if (due && Date.now() >= due) check(); }

local('until', at('until'), true);
local('since', at('since'));
if (el('updated')) local('updated', at('updated'));
target = at('until');
tick();
setInterval(tick, 1000);
if (!ask) return;
// Without a cookie there is no position to poll: a poll would take a seat that cannot be used.
var stranger = !keepsCookies();
if (stranger) {
  d.title = text('allow');
  put('heading', d.title);
  list.hidden = true;
  line('order', null); line('kept', null);
  el('cookies').hidden = false;
}
if (stranger || !window.fetch || !window.Promise) {
  setTimeout(go, Math.max(20000, Number(ask)));
  return;
}
put('live', text('live'));
el('check').addEventListener('click', function (e) {
  if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  check(true);
});
d.addEventListener('visibilitychange', function () { if (d.hidden) listen(false); else wake(); });
d.addEventListener('resume', wake);
window.addEventListener('pagehide', function () { listen(false); });
window.addEventListener('pageshow', function (e) {
  if (e.persisted) { inside = busy = false; run++; check(); }
});
window.addEventListener('online', function () { plan(Math.random() * 2000); });
// The first poll is early: a position counts from the first request with its ticket.
plan(1000);
})();
