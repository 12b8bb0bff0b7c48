"use strict";
// The page's only script: items by filter, a page of them at a time, and the panel of the item that the address names
// (#item-PLACE). What models, judges and documents say is only ever put into text nodes.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const FIELDS = ["benchmark", "id", "part", "state", "passed", "judged", "total", "query", "documents", "references", "instruction", "failure", "scores", "answers"];
  const items = data.items.map((values, place) => ({ place, ...Object.fromEntries(FIELDS.map((name, i) => [name, values[i]])) }));
  const PAGE = 25;
  const panel = document.getElementById("panel");
  const hint = panel.firstElementChild;
  const list = document.getElementById("list");
  const form = document.querySelector(".filters");
  const filters = [...form.querySelectorAll('[id^="filter-"]')].map((field) => [field.id.slice("filter-".length), field]);
  let fitting = items;
  let first = 0;
  let opened = null;

  function make(tag, options = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "class") element.className = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }
  const spoken = (name) => name.replaceAll("_", " ");
  const number = (value) => value.toLocaleString("en");

  // Answers: [prompt, text, is cut, [passed, label, reason] or null, unread reply or null, [outcome, numbers, doubted] or null]

  const stateOf = ([, , , said, unread]) => (said ? (said[0] ? "passed" : "failed") : unread !== null ? "unread" : "unjudged");
  const MARKS = {
    split: (item) => item.passed > 0 && item.passed < item.judged,
    unread: (item) => item.answers.some((answer) => stateOf(answer) === "unread"),
    cut: (item) => item.answers.some((answer) => answer[2]),
    doubted: (item) => item.answers.some((answer) => answer[5] && answer[5][0] === "REFUTED"),
  };
  const texts = new Map();
  function textOf(item) {
    if (!texts.has(item)) texts.set(item, [item.id, item.query, ...item.answers.map((answer) => answer[1])].join("\n").toLowerCase());
    return texts.get(item);
  }
  const FITS = {
    text: (item, value) => textOf(item).includes(value.toLowerCase()),
    benchmark: (item, value) => data.benchmarks[item.benchmark] === value,
    part: (item, value) => item.part === value,
    state: (item, value) => item.state === value,
    mark: (item, value) => MARKS[value](item),
  };

  // The list

  function votesLine(item) {
    const line = make("span", { class: "votes-line", role: "img", "aria-label": `${item.passed} of ${item.judged} judged answers passed` });
    const order = { passed: 0, failed: 1, unread: 2, unjudged: 3 };
    const states = item.answers.map(stateOf).sort((a, b) => order[a] - order[b]);
    for (const state of states.slice(0, 32)) line.append(make("i", { class: state }));
    return line;
  }

  function card(item) {
    const open = () => (location.hash = `item-${item.place}`);
    const title = item.documents.length === 1 ? data.documents[item.documents[0]].title : "";
    const from = [data.benchmarks[item.benchmark], item.part === "all" ? "" : spoken(item.part), title].filter((text) => text);
    const marks = Object.entries({ unread: "judge unread", cut: "cut off", doubted: "numbers refuted" })
      .filter(([mark]) => MARKS[mark](item))
      .map(([, label]) => make("span", { class: "chip warn" }, label));
    return make("article", { class: `item${item.place === opened ? " current" : ""}`, id: `card-${item.place}`, onclick: open },
      make("header", {},
        make("span", { class: `badge ${item.state}` }, item.state), votesLine(item),
        make("a", { class: "id", href: `#item-${item.place}` }, item.id),
        make("span", { class: "soft" }, from.join(" \u00b7 ")), ...marks),
      make("p", { class: "query", dir: "auto" }, item.query.slice(0, 400)));
  }

  function showPage() {
    list.replaceChildren(...fitting.slice(first, first + PAGE).map(card));
    const last = Math.min(first + PAGE, fitting.length);
    document.getElementById("count").textContent = `${number(fitting.length)} of ${number(items.length)} items`;
    document.getElementById("none").hidden = fitting.length > 0;
    document.getElementById("pager").hidden = fitting.length <= PAGE;
    document.getElementById("place").textContent = `${number(first + 1)} \u2013 ${number(last)}`;
    document.getElementById("back").disabled = first === 0;
    document.getElementById("next").disabled = last === fitting.length;
  }
  function turn(by) {
    first += by * PAGE;
    showPage();
    document.getElementById("items").scrollIntoView({ block: "start" });
  }
  document.getElementById("back").addEventListener("click", () => turn(-1));
  document.getElementById("next").addEventListener("click", () => turn(1));

  function applyFilters() {
    const wanted = filters.map(([name, field]) => [name, field.value.trim()]).filter(([, value]) => value);
    fitting = items.filter((item) => wanted.every(([name, value]) => FITS[name](item, value)));
    first = 0;
    showPage();
    return wanted;
  }
  let waiting = 0;
  function filtersChanged() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const query = new URLSearchParams(applyFilters()).toString();
      history.replaceState(null, "", query ? `#?${query}` : location.pathname + location.search);
    }, 120);
  }
  function setFilters(wanted) {
    for (const [name, field] of filters) field.value = wanted.get(name) ?? "";
    applyFilters();
  }
  form.addEventListener("input", filtersChanged);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filtersChanged));

  // The panel

  function answerBox(answer, place, isOpen) {
    const [prompt, text, isCut, said, unread, audit] = answer;
    const state = stateOf(answer);
    const label = said ? said[1] : state === "unread" ? "could not be read" : "not judged";
    const chips = [];
    if (isCut) chips.push(make("span", { class: "chip warn" }, "cut at its token limit"));
    if (audit) {
      chips.push(make("span", { class: `badge ${audit[0]}` }, `numbers: ${spoken(audit[0]).toLowerCase()}`));
      for (const [value, why, found] of audit[2]) {
        chips.push(make("span", { class: "chip" }, `${value}: ${spoken(why)}${found !== null ? `, the documents say ${found}` : ""}`));
      }
    }
    const box = make("details", { class: `answer ${state === "unread" ? "unscored" : state} ${state === "failed" ? "vote" : ""}` },
      make("summary", {}, `Answer ${place + 1} `, make("span", { class: `badge ${state === "unread" ? "unscored" : state}` }, label),
        prompt === "answer" ? null : make("span", { class: "soft" }, ` ${spoken(prompt)}`)),
      make("div", { class: "said" },
        make("div", { class: "text", dir: "auto", tabindex: "0" }, text || "(empty)"),
        chips.length ? make("div", { class: "chips" }, ...chips) : null,
        said && said[2] ? make("blockquote", { dir: "auto" }, said[2]) : null,
        unread !== null ? make("blockquote", { dir: "auto" }, unread) : null));
    box.open = isOpen;
    return box;
  }

  function documentBox(place, isOpen) {
    const entry = data.documents[place];
    const text = make("div", { class: "text", dir: "auto", tabindex: "0" }, entry.text);
    const left = entry.size - Array.from(entry.text).length;
    if (left > 0) text.append(make("span", { class: "gap" }, `${number(left)} more characters are not in this page`));
    const box = make("details", { class: "document" }, make("summary", {}, entry.title ? `${entry.id} \u00b7 ${entry.title}` : entry.id), text);
    box.open = isOpen;
    return box;
  }

  function scoresTable(scores) {
    const rows = Object.entries(scores).map(([name, value]) =>
      make("tr", {}, make("td", {}, spoken(name)), make("td", { class: "n figure" }, value === null ? "-" : String(value))));
    return make("details", {}, make("summary", {}, "Scores"), make("table", { class: "small" }, make("tbody", {}, ...rows)));
  }

  function openItem(item, moveFocus) {
    const at = fitting.indexOf(item);
    const go = (by) => () => (location.hash = `item-${fitting[at + by].place}`);
    const step = (label, sign, by) =>
      Object.assign(make("button", { type: "button", "aria-label": label, onclick: go(by) }, sign), { disabled: !fitting[at + by] });
    const split = item.answers.findIndex((answer) => stateOf(answer) !== stateOf(item.answers[0]));
    const parts = [
      make("div", { class: "bar" },
        make("span", {}, make("span", { class: `badge ${item.state}` }, item.state), ` ${number(at + 1)} of ${number(fitting.length)}`),
        step("previous item", "\u2190", -1), step("next item", "\u2192", 1),
        make("button", { type: "button", "aria-label": "close", onclick: close }, "\u2715")),
      make("p", { class: "soft" }, item.id),
      item.instruction ? make("p", { class: "remark", dir: "auto" }, item.instruction) : null,
      make("h3", { class: "query", dir: "auto" }, item.query),
      item.references.length ? make("p", { class: "soft" }, `Reference: ${item.references.join(" / ")}`) : null,
      item.failure ? make("p", { class: "remark" }, `No answer: ${spoken(item.failure)}`) : null,
      make("h4", {}, `${item.passed} of ${item.judged} judged answers passed`),
      ...item.answers.map((answer, place) => answerBox(answer, place, place === 0 || place === split)),
      item.documents.length ? make("h4", {}, item.documents.length === 1 ? "Document" : `${item.documents.length} documents`) : null,
      ...item.documents.map((place) => documentBox(place, item.documents.length === 1)),
      scoresTable(item.scores),
    ];
    panel.replaceChildren(...parts.filter((part) => part !== null));
    panel.classList.add("open");
    document.body.classList.add("reading");
    panel.scrollTop = 0;
    if (moveFocus) panel.focus({ preventScroll: true });
  }

  function forget() {
    opened = null;
    panel.classList.remove("open");
    document.body.classList.remove("reading");
    panel.replaceChildren(hint);
  }
  function close() {
    forget();
    history.replaceState(null, "", location.pathname + location.search);
    showPage();
  }

  // The address

  function follow(isFirst) {
    const hash = location.hash;
    if (hash.startsWith("#?")) return setFilters(new URLSearchParams(hash.slice(2)));
    const found = /^#item-(\d+)$/.exec(hash);
    const item = found ? items[Number(found[1])] : undefined;
    if (!item) return;
    if (!fitting.includes(item)) setFilters(new URLSearchParams());
    opened = item.place;
    first = Math.floor(fitting.indexOf(item) / PAGE) * PAGE;
    showPage();
    openItem(item, !isFirst);
    const card = document.getElementById(`card-${item.place}`);
    const { top, bottom } = card.getBoundingClientRect();
    if (isFirst || top < 90 || bottom > innerHeight - 20) card.scrollIntoView({ block: isFirst ? "start" : "center", behavior: "instant" });
  }
  addEventListener("hashchange", () => follow(false));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.matches("input, select, textarea");
    const isOpen = panel.classList.contains("open");
    if (event.key === "Escape" && isOpen) close();
    else if (event.key === "/" && !isTyping) {
      event.preventDefault();
      document.getElementById("filter-text").focus();
    } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !isTyping && isOpen) {
      const button = panel.querySelector(`[aria-label="${event.key === "ArrowLeft" ? "previous" : "next"} item"]`);
      if (button && !button.disabled) button.click();
    }
  });
  applyFilters();
  follow(true);
})();
