(function () {
'use strict';
var d = document, root = d.documentElement;
var place = root.getAttribute('data-place'), ask = root.getAttribute('data-ask');
var sent = root.hasAttribute('data-post'), grace = root.getAttribute('data-grace');
// The server's clock less ours; only the server's counts.
var shift = Number(root.getAttribute('data-now')) - Date.now();
var timer, due = 0, run = 0, busy = false, fails = 0, inside = false;
var said = {}, saidAt = 0, target = 0, bounced = false;
// Sent back here right after going in: the ticket got lost. Do not spin.
try { bounced = Date.now() - Number(sessionStorage.getItem(place)) < 5000; } catch (x) { /* may be forbidden */ }

function el(id) { return d.getElementById(id); }
function put(id, text) {
  var e = el(id);
  if (e && e.textContent !== text) e.textContent = text;
}
// A line whose value is null is not there.
function line(id, text) {
  var e = el(id), box = e && e.tagName === 'DD' ? e.parentNode : e;
  if (!e) return;
  box.hidden = text == null;
  if (text != null) put(id, text);
}
// Server times are UTC; shown in the visitor's own zone, which is named.
function local(id, at, day) {
  var e = el(id), form = { hour: '2-digit', minute: '2-digit', timeZoneName: 'short' };
  if (!e || !at) return;
  if (day) { form.weekday = form.month = 'long'; form.day = form.year = 'numeric'; }
  if (!day || at % 60000) form.second = '2-digit';
  try {
    put(id, new Date(at).toLocaleString('en-GB', form));
    e.setAttribute('datetime', new Date(at).toISOString());
  } catch (x) { /* the UTC text stays */ }
}
function two(n) { return (n < 10 ? '0' : '') + n; }
function tick() {
  if (!target) return;
  var s = Math.ceil((target - Date.now() - shift) / 1000), days = Math.floor(s / 86400);
  if (s <= 0) return put('left', 'any moment now');
  put('left', 'in ' + (days ? days + (days > 1 ? ' days ' : ' day ') : '') +
    two(Math.floor(s / 3600) % 24) + ':' + two(Math.floor(s / 60) % 60) + ':' + two(s % 60));
}

// Speaks to those who do not see the page: when the reason or the estimate changes or a tenth of
// the line is gone, but a moving number at most once a minute.
function speak(c, w) {
  var now = Date.now(), ahead = c.peopleAhead, text;
  if (c.reason !== said.reason || w.message !== said.message) {
    text = w.heading + '. ' + (w.message ? w.message + ' ' : '') + w.reason;
  }
  else if (now - saidAt < 60000) return;
  else if (w.wait !== said.wait || (ahead != null && ahead <= said.ahead * 0.9)) {
    text = (w.ahead ? 'People ahead of you: ' + w.ahead + '. ' : '') +
      (w.wait ? 'Estimated wait: ' + w.wait + '.' : '');
  } else return;
  if (said.reason && text) put('say', text);
  said = { reason: c.reason, message: w.message, wait: w.wait, ahead: ahead };
  saidAt = now;
}
function show(c, w) {
  put('heading', w.heading);
  put('reason', w.reason);
  line('message', w.message); line('order', w.order); line('kept', w.kept);
  line('ahead', w.ahead); line('waiting', w.waiting); line('wait', w.wait);
  target = w.until ? w.until.moment.atMs : 0;
  el('left').parentNode.parentNode.hidden = !target;
  if (target) { put('until-label', w.until.label); local('until', target, true); tick(); }
  el('since').parentNode.parentNode.hidden = !w.since;
  if (w.since) local('since', w.since.atMs);
  if (w.updated) { shift = w.updated.atMs - Date.now(); local('updated', w.updated.atMs); }
  d.getElementsByTagName('dl')[0].hidden = el('check').hidden = false;
  d.title = (w.ahead && c.peopleAhead != null ? w.ahead + ' ahead: ' : '') + w.heading;
  speak(c, w);
}

// Browsers that keep none may say that they do, so one is tried. No room's name has a dot in it.
function keepsCookies() {
  var probe = '__anteroom_.=1', kept = false;
  try {
    d.cookie = probe + ';SameSite=Lax';
    kept = d.cookie.indexOf(probe) >= 0;
    d.cookie = probe + ';Max-Age=0';
  } catch (x) { /* forbidden: kept nowhere */ }
  return kept;
}

// By GET: what was sent by POST must not be sent again without being asked for.
function go() {
  if (sent) location.replace(location.href.split('#')[0]);
  else location.reload();
}
function enter() {
  var next = bounced ? 'Trying again in 20 seconds.' : 'You are being taken in now.';
  inside = true;
  target = 0;
  clearTimeout(timer);
  if (bounced) el('cookies').hidden = false;
  d.title = 'It is your turn';
  put('heading', 'It is your turn');
  put('reason', next + (sent ? ' Please send again what was not passed on.' : ''));
  d.getElementsByTagName('dl')[0].hidden = true;
  line('order', null); line('kept', null);
  el('check').hidden = true;
  put('live', '');
  put('say', 'It is your turn. ' + next);
  setTimeout(function () {
    try { sessionStorage.setItem(place, Date.now()); } catch (x) { /* may be forbidden */ }
    go();
  }, bounced ? 20000 : 1500);
}

function plan(ms) {
  clearTimeout(timer);
  due = Date.now() + ms;
  timer = setTimeout(check, ms);
}
function failed() {
  fails++;
  put('live', (navigator.onLine === false ? 'You are offline.' : 'No connection at the moment.') +
    ' Your place is safe for ' + grace + ' from the last update; trying again.');
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
    fails = 0;
    try { show(c, answer.words); } catch (x) { return failed(); }
    put('live', asked === true ? 'Checked just now: you are still waiting.' : 'This page updates itself.');
    // A place counts only while it is asked for in time, so no jitter is added to the server's own.
    if (answer.askAfterMs != null) plan(Math.max(1000, answer.askAfterMs));
  }
  busy = true;
  clearTimeout(timer);
  guard = setTimeout(end, 15000);
  fetch(place, { credentials: 'same-origin', cache: 'no-store', headers: { Accept: 'application/json' } })
    .then(function (r) { return r.json().then(function (answer) { end(r.ok, answer); }); })
    .then(null, function () { end(); });
}
function wake() { if (due && Date.now() >= due) check(); }

local('until', Number(el('until').getAttribute('data-at')), true);
local('since', Number(el('since').getAttribute('data-at')));
if (el('updated')) local('updated', Number(el('updated').getAttribute('data-at')));
target = Number(el('until').getAttribute('data-at')) || 0;
tick();
setInterval(tick, 1000);
if (!ask) return;
// Without a cookie nobody has a place to ask for: asking would take a seat that cannot be used.
var stranger = !keepsCookies();
if (stranger) {
  d.title = 'Please allow cookies';
  put('heading', d.title);
  d.getElementsByTagName('dl')[0].hidden = true;
  line('order', null); line('kept', null);
  el('cookies').hidden = false;
}
if (stranger || !window.fetch || !window.Promise) { setTimeout(go, Math.max(20000, Number(ask))); return; }
put('live', 'This page updates itself.');
el('check').addEventListener('click', function (e) {
  if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  check(true);
});
d.addEventListener('visibilitychange', function () { if (!d.hidden) wake(); });
window.addEventListener('pageshow', function (e) { if (e.persisted) { inside = busy = false; run++; check(); } });
window.addEventListener('online', function () { plan(Math.random() * 2000); });
// Soon, because a place counts from the first time that its ticket is brought back.
plan(1000);
})();
