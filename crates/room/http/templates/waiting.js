(function () {
'use strict';
// The script's own element has its settings. In a page of the operator, ids and classes have a
// prefix, and elements may be missing.
var d = document, body = d.body, me = d.currentScript, spare = {},
  prefix = attribute(me, 'prefix') || '', icon = el('icon'), plainIcon = icon.href,
  lang = me.lang === 'en' ? 'en-GB' : me.lang;
var url = attribute(me, 'position'), sent = attribute(me, 'post'), key = '',
  grace = Number(attribute(me, 'grace')), lost = attribute(me, 'loss') && Date.now();
// Server clock minus local clock; only the server's time matters.
var shift = Number(attribute(me, 'now')) - Date.now(), lastOk = Date.now();
var timer, due = 0, run = 0, busy = false, fails = 0, inside = false, isAway = false;
var w = {}, texts = {}, said = {}, target = Number(attribute(me, 'until')), bounced = false;
var stream, mute = 0, way = { from: 0, part: 0 }, audio, fact = 0;
// All tabs have one ticket. One that enters or leaves the line says so to the others.
var tabs = 'tabs ' + url.split('&')[0], heard = stored(tabs);
// What the script of a turn needs.
var page = {
  el: el, put: put, state: state, button: button, say: say, time: time, on: on, url: url,
  stored: stored, beep: beep, onlyHeading: onlyHeading, go: go, check: check, leave: leaveTurn,
  sent: sent, look: look
};
// Sent back here right after an admission: the ticket got lost. Avoid a reload loop.
try {
  bounced = Date.now() - Number(sessionStorage.getItem(url)) < 5000;
} catch (x) { /* may be forbidden */ }

function el(id) {
  var e = d.getElementById(prefix + id);
  if (!e) e = spare[id] = spare[id] || d.createElement('p');
  return e;
}
// Gives an element one class of several.
function look(e, names, name) {
  names.split(' ').forEach(function (n) { e.classList.toggle(prefix + n, n === name); });
}
function attribute(e, name) { return e.getAttribute('data-' + name); }
function text(name) { return texts[name] || ''; }
function on(id, run) { el(id).addEventListener('click', run); }
function stored(name, value) {
  try {
    if (value != null) localStorage.setItem('anteroom ' + name, value);
    return localStorage.getItem('anteroom ' + name);
  } catch (x) { /* may be forbidden */ }
}
// Server times are UTC. The page shows them in the visitor's zone, with its name.
function clock(at, form) {
  var o = { hour: '2-digit', minute: '2-digit' };
  if (form === '+') { o.weekday = o.month = 'long'; o.day = o.year = 'numeric'; }
  if (form === '*') o.second = '2-digit';
  else if (form !== '-') o.timeZoneName = 'short';
  return new Date(at).toLocaleString(lang + '-u-nu-latn', o);
}
// Writes the points in time of a text: {1785578400000}, with a sign for their form.
function plain(words) {
  var parts = words.split('{'), out = parts[0], i, mark, at;
  for (i = 1; i < parts.length; i++) {
    mark = parts[i].split('}');
    at = parseInt(mark[0], 10);
    out += clock(at, mark[0].slice(String(at).length)) + mark[1];
  }
  return out;
}
function fill(words, name, value) { return words.split('{' + name + '}').join(value); }
// Shows a text, or hides its line if there is none.
function put(id, words) {
  var e = el(id), box = e.closest('.' + prefix + 'line') || e;
  box.hidden = !words;
  words = words && id !== 'message' ? plain(words) : words || '';
  if (e.textContent !== words) e.textContent = words;
}
function state(kind, tag, heading, why) {
  look(el('tag'), 'go hold pause stop calm done', kind);
  put('tag', tag); put('heading', heading); put('why', why);
}
function button(words) {
  el('go').hidden = !words;
  if (words) el('go').textContent = words;
}
function two(n) { return (n < 10 ? '0' : '') + n; }
function time(s) { return Math.floor(s / 60) + ':' + two(s % 60); }
function say(id, words) { el(id).textContent = words; }
function count(n) {
  return Number(n).toLocaleString(lang + '-u-nu-latn');
}

// Counts down to the opening, or through a turn.
function tick() {
  var s = Math.ceil((target - Date.now() - shift) / 1000);
  if (page.tick) page.tick();
  else if (target && !fails) {
    if (s <= 0) put('number', text('soon'));
    // From an hour on, the server's words are easier to read.
    else if (s < 3600) put('number', time(s));
  }
}
// Announces the state and the message when they change. The position is announced in a region of
// its own: once a minute, or earlier if a tenth of the people ahead is gone.
function speak(a) {
  var now = Date.now(), first = said.state == null, news = w.heading + '. ' + (w.why || ''),
    spot = w.label ? w.label + ': ' + w.number + '. ' : '';
  if (w.l1) spot += w.l1 + ': ' + w.v1 + '.';
  if (first) said = { at: now, p: a.p, spot: spot };
  else {
    var isNew = said.state !== news, out = isNew ? plain(news) : '';
    if (said.message !== w.message && w.message) {
      out += ' ' + text('message') + ': ' + w.message;
    }
    if (isNew || said.message !== w.message) say('say', out);
    var gone = Math.abs(said.p - a.p) >= said.p * 0.1, age = now - said.at;
    if (!target && said.spot !== spot && (age >= 60000 || (gone && age >= 20000))) {
      say('pos', plain(spot));
      said.at = now; said.p = a.p; said.spot = spot;
    }
  }
  said.state = news; said.message = w.message;
}
// Shows the part of the queue that is behind this visitor. It never shrinks, and survives the tab.
function walked(p, since) {
  var name = url.split('&')[0];
  try { way = JSON.parse(stored(name)) || way; } catch (x) { /* not ours */ }
  if (way.since !== since) way = { since: since, from: 0, part: 0 };
  if (p > way.from) way.from = p;
  if (p && way.from > 1) way.part = Math.max(way.part, 1 - (p - 1) / (way.from - 1));
  // A wait that became longer is as old as the first notice of it in this browser.
  if ((way.rise || '') !== (w.rise || '')) { way.rise = w.rise; way.risen = Date.now() + shift; }
  put('risen', w.rise && '{' + way.risen + '}');
  stored(name, JSON.stringify(way));
  el('way').hidden = !p || !way.part;
  el('bar').value = way.part * 100;
  say('joined', fill(text('joined'), 'n', count(way.from)));
  say('part', fill(text('part'), 'n', Math.floor(way.part * 100)));
}
function show(a) {
  var ids = 'number v1 v2 moved', name, i, steps;
  // Texts of an equal key are not sent again; numbers always are.
  if (a.k === key) ids.split(' ').forEach(function (id) { delete w[id]; });
  else w = {};
  key = a.k;
  for (name in a.w) w[name] = a.w[name];
  if (a.t) texts = a.t;
  if (a.now) shift = a.now - Date.now();
  if (a.since) w.since = a.since;
  target = w.until || 0;
  if (w.loss) lost = Date.now();
  // What was lost stays on the page. After half a minute a pause or a fault is the news.
  if (!lost || w.loss || (w.kind !== 'go' && Date.now() - lost > 30000)) {
    state(w.kind, w.tag, w.heading, w.why);
  }
  (ids + ' message at label l1 l2 note rise bold keep').split(' ').forEach(function (id) {
    put(id, w[id]);
  });
  look(el('number'), 'big mid', w.big && !lost ? 'big' : 'mid');
  steps = w.steps || [];
  el('steps').hidden = !steps.length;
  el('steps').textContent = '';
  for (i = 0; i < steps.length; i++) {
    var li = d.createElement('li'), b = d.createElement('b'), parts = steps[i].split('|');
    b.textContent = plain(parts[0]);
    li.appendChild(b);
    li.appendChild(d.createTextNode(' ' + parts[1]));
    el('steps').appendChild(li);
  }
  walked(a.p, w.since);
  put('updated', fill(text('updated'), 'at', '{' + (Date.now() + shift) + '*}'));
  button(w.full && text('check'));
  tick();
  d.title = fill(w.title, 'n', w.number);
  speak(a);
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
function lines(ids) { ids.split(' ').forEach(function (id) { put(id, ''); }); }
function onlyHeading() {
  lines('why message at number l1 l2 v1 v2 note moved rise keep updated');
  el('way').hidden = el('steps').hidden = true;
}

// The script of a turn comes with the turn: most polls have none.
function turn(a) {
  var script = d.createElement('script');
  if (!page.hold) {
    window.anteroomPage = page;
    script.textContent = a.script;
    body.appendChild(script);
  }
  page.hold(a);
}
function leaveTurn() {
  page.tick = null;
  inside = isAway = false;
  said.state = '';
  look(body, 'turn');
  icon.href = plainIcon;
  el('hold').hidden = true;
  el('tell').hidden = false;
  lines('inside');
}

// Loads the page by GET: a form must not be sent again without the visitor.
function go() {
  var to = attribute(me, 'entry');
  if (inside) {
    try { sessionStorage.setItem(url, Date.now()); } catch (x) { /* may be forbidden */ }
    stored(tabs, 'go ' + Date.now());
  }
  if (to) location.replace(to);
  else location.reload();
}
function enter(a) {
  halt();
  stored(tabs, 'in ' + Date.now());
  target = 0;
  el('tell').hidden = true;
  el('leave').hidden = true;
  look(body, 'turn', 'turn');
  icon.href = 'data:image/svg+xml,<svg xmlns=%22http:/' + '/www.w3.org/2000/svg%22>' +
    '<circle cx=%229%22 cy=%229%22 r=%229%22 fill=%22green%22/></svg>';
  if (a && a.turn) return turn(a);
  var t = a && a.words || {}, next = (bounced ? t.again : t.now) + (sent ? ' ' + t.send : '');
  onlyHeading();
  state('done', t.tag, t.heading, next);
  d.title = t.heading;
  button('');
  say('shout', d.title + '. ' + next);
  // In the background nobody is there: no seat is taken before the visitor looks.
  isAway = d.hidden;
  if (!isAway) setTimeout(go, bounced ? 20000 : 1500);
}
function beep() {
  var Audio = window.AudioContext || window.webkitAudioContext;
  audio = audio || new Audio();
  audio.resume();
  var tone = audio.createOscillator(), gain = audio.createGain();
  gain.gain.value = 0.2;
  tone.connect(gain); gain.connect(audio.destination);
  tone.start(); tone.stop(audio.currentTime + 0.6);
}
function toggle(id, isThere, start) {
  var e = el(id);
  function set(is) { e.setAttribute('aria-pressed', stored(id, String(is)) === 'true'); }
  e.hidden = !isThere;
  set(stored(id) === 'true');
  on(id, function () {
    var is = e.getAttribute('aria-pressed') !== 'true';
    if (is) start(set);
    else set(false);
  });
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
  var off = navigator.onLine === false ? 'off' : 'cut', at = lastOk + shift,
    why = fill(text(off + 'text'), 'at', '{' + (at + grace) + '}');
  // Before the first response there are no words for it, and the page is right as it is.
  if (key) {
    state('hold', text('tagoff'), text(off), why);
    lines('v1 v2 moved note rise keep');
    button(text('retry'));
    if (!fails) say('say', plain(text(off) + '. ' + why));
  }
  if (key && el('label').textContent) put('label', fill(text('last'), 'at', '{' + at + '}'));
  fails++;
  said.state = '';
  plan(Math.min(60000, 2000 * Math.pow(2, Math.min(fails, 5))) * (0.5 + Math.random() / 2));
}
// Whether another tab left the line since this page was loaded. A poll would join it again.
function hasLeft() {
  var now = stored(tabs), isNew = now !== heard;
  heard = now;
  if (!isNew || !now || now.indexOf('left') || !d.forms[0]) return;
  halt();
  location.replace(d.forms[0].action);
  return true;
}
function halt() {
  inside = true;
  clearTimeout(timer);
  listen(false);
}
function quit(e) {
  var to = e.target.action;
  e.preventDefault();
  if (inside) return;
  halt();
  fetch(to, { method: 'POST', credentials: 'same-origin' })
    .then(function (r) {
      if (!r.ok) throw r;
      stored(tabs, 'left ' + Date.now());
      location.replace(to);
    })
    .then(null, function () { inside = false; failed(); });
}
function check(asked) {
  if (busy || inside || hasLeft()) return;
  var mine = ++run, guard;
  function end(ok, a) {
    if (mine !== run) return;
    run++;
    busy = false;
    clearTimeout(guard);
    var c = a && a.cfWaitingRoom;
    if (!a || (!c && !ok)) return failed();
    if (c ? c.inWaitingRoom === false : !a.w) return enter(a);
    lastOk = Date.now();
    fails = 0;
    // A node of another version sends other words. The page keeps its own, and its position.
    if (asked === true) say('say', text('checked'));
    if (a.w) {
      try { show(a); } catch (x) { return failed(); }
    }
    listen(a.push);
    // A position is kept only while polls come in time, so no jitter is added to the server's own.
    var next = a.ask == null ? a.askAfterMs : a.ask;
    // That poll waited for the turn in vain. A hidden page waits on, a visible one polls as usual.
    if (next === 0 && d.hidden) check();
    else plan(next === 0 ? 2000 : Math.max(1000, next || 30000));
  }
  busy = true;
  clearTimeout(timer);
  guard = setTimeout(end, 15000);
  // Browsers delay the timers of hidden pages, and no responses: the poll waits for the turn.
  fetch(url + '&k=' + key + (d.hidden ? '&wait=1' : ''), {
    credentials: 'same-origin', cache: 'no-store', headers: { Accept: 'application/json' }
  })
    .then(function (r) { return r.json().then(function (a) { end(r.ok, a); }); })
    .then(null, function () { end(); });
}
function wake() { if (due && Date.now() >= due) check(); }
function link() {
  var e = el('lang');
  e.href = attribute(e, 'plain') + encodeURIComponent(location.hash);
}

[].forEach.call(d.querySelectorAll('time[data-form]'), function (e) {
  e.textContent = clock(Date.parse(e.getAttribute('datetime')), attribute(e, 'form'));
});
el('lang').setAttribute('data-plain', el('lang').getAttribute('href'));
link();
window.addEventListener('hashchange', link);
tick();
setInterval(tick, 1000);
if (el('more') !== spare.more) {
  var facts = el('more').parentNode.getElementsByTagName('p');
  var turnTo = function () {
    for (var i = 0; i < facts.length; i++) facts[i].hidden = i !== fact;
    var words = attribute(el('of'), 'of');
    say('of', fill(fill(words, 'n', fact + 1), 'm', facts.length));
  };
  el('more').hidden = facts.length < 2;
  on('next', function () { fact = (fact + 1) % facts.length; turnTo(); });
  turnTo();
}
// Without a cookie there is no position to poll: a poll would take a seat that cannot be used.
if (!keepsCookies()) return location.replace(attribute(me, 'cookies'));
if (!window.fetch || !window.Promise) {
  setTimeout(go, Math.max(20000, Number(attribute(me, 'ask'))));
  return;
}
el('go').hidden = !attribute(me, 'full');
on('go', function (e) {
  if (e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  if (inside) go();
  else check(true);
});
el('tell').hidden = false;
toggle('sound', window.AudioContext || window.webkitAudioContext, function (set) {
  beep();
  set(true);
});
toggle('notice', window.Notification, function (set) {
  Notification.requestPermission(function (answer) { set(answer === 'granted'); });
});
d.addEventListener('visibilitychange', function () {
  if (!d.hidden && isAway) return go();
  if (!d.hidden) return wake();
  listen(false);
});
d.addEventListener('resume', wake);
window.addEventListener('storage', function (e) {
  if (e.key !== 'anteroom ' + tabs) return;
  // Another tab went in, and took the turn for all of them.
  if (page.tick && !(e.newValue || '').indexOf('go')) {
    page.tick = null;
    setTimeout(go, 1000);
  } else check();
});
if (d.forms[0]) d.forms[0].addEventListener('submit', quit);
window.addEventListener('pagehide', function () { listen(false); });
window.addEventListener('pageshow', function (e) {
  if (e.persisted) { busy = false; run++; leaveTurn(); check(); }
});
window.addEventListener('online', function () { plan(Math.random() * 2000); });
// The first poll is early: a position counts from the first request with its ticket.
plan(1000);
})();
