(function (page) {
'use strict';
var d = document, el = page.el, turn, words, shift = 0, called = 0;
// When the page enters by itself; 0 = never, because the visitor is away or asked for it.
var enterAt = 0, isHeld = false;

// A turn is held until it ends. A visible page enters by itself after eight seconds, unless the
// visitor stops it. A page in the background waits for the visitor.
page.hold = function (a) {
  turn = a.turn;
  words = a.words;
  shift = turn.nowMs - Date.now();
  called = 99;
  page.onlyHeading();
  page.button(words.enter);
  page.tick = tick;
  if (isHeld) held(words.asked);
  else if (d.hidden) away();
  else {
    enterAt = Date.now() + 8000;
    page.state('done', words.tag, words.heading, page.sent && words.send);
    page.say('shout', words.heading + '. ' + words.turnIn + ' 8.');
    el('hold').textContent = words.notYet;
    el('hold').hidden = false;
    page.put('inside', words.inside);
  }
  tick();
};
function held(why) {
  enterAt = 0;
  isHeld = true;
  page.state('calm', words.heldTag, words.heldHeading, why);
  page.say('shout', words.heldHeading + '. ' + why);
  el('hold').textContent = words.extend;
  el('hold').hidden = !turn.canExtend;
  page.put('inside', words.next);
}
// Sound and notification, only if the visitor switched them on.
function away() {
  held(words.away);
  try {
    if (page.stored('sound') === 'true') page.beep();
    if (page.stored('notice') === 'true') new Notification(words.heldHeading);
  } catch (x) { /* not allowed any more */ }
}
function tick() {
  var s = Math.ceil((turn.endsAtMs - Date.now() - shift) / 1000),
    left = Math.ceil((enterAt - Date.now()) / 1000);
  if (s <= 0) {
    // Over: the queue goes on, or another turn.
    enterAt = 0;
    isHeld = false;
    page.leave();
    return page.check();
  }
  if (enterAt && left <= 0) { page.tick = null; return page.go(); }
  page.put('label', enterAt ? words.turnIn : words.within);
  page.put('number', enterAt ? String(left) : page.time(s));
  page.look(el('number'), 'big mid', 'big');
  d.title = enterAt ? words.heading : '(' + page.time(s) + ') ' + words.heldHeading;
  if (enterAt) return;
  [20, 10].forEach(function (n) {
    if (s <= n && called > n) {
      called = n;
      page.say('shout', n > 10 ? words.left20 : words.left10);
    }
  });
}
function extend() {
  el('hold').hidden = true;
  fetch(page.url.replace('/position?', '/turn?'), { method: 'POST', credentials: 'same-origin' })
    .then(function (r) { return r.json(); })
    .then(function (a) { if (page.tick && a.turn) page.hold(a); })
    .then(null, function () { /* the turn ends as it would have */ });
}
page.on('hold', function () {
  if (enterAt) held(words.asked);
  else extend();
  tick();
});
d.addEventListener('visibilitychange', function () {
  if (d.hidden && page.tick && enterAt) { away(); tick(); }
});
})(window.anteroomPage);
