"use strict";
// The page's only script: filters, and the panel of the claim that the address names (#row-ID/CLAIM). Text of answers and
// documents is only ever put into text nodes.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const panel = document.getElementById("panel");
  const hint = panel.firstElementChild;
  const articles = [...document.querySelectorAll("article")];
  const form = document.querySelector(".filters");
  // Each filter holds articles by the attribute of its name: filter-step by data-step.
  const filters = [...form.querySelectorAll('[id^="filter-"]')].map((field) => [field.id.slice("filter-".length), field]);
  const total = document.getElementById("count").textContent.split(" of ")[1];

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

  // Filters

  const valueOf = (field) => (field.type === "checkbox" ? (field.checked ? "1" : "") : field.value.trim());

  function fits(article, wanted) {
    return filters.every(([name, field]) => {
      const value = wanted[name];
      if (!value) return true;
      if (name === "text") return textOf(article).includes(value.toLowerCase());
      const said = article.dataset[name] ?? "";
      return "many" in field.dataset ? said.split(" ").includes(value) : said === value;
    });
  }
  const texts = new Map();
  function textOf(article) {
    if (!texts.has(article)) texts.set(article, article.textContent.toLowerCase());
    return texts.get(article);
  }

  function applyFilters() {
    const wanted = Object.fromEntries(filters.map(([name, field]) => [name, valueOf(field)]));
    let shown = 0;
    for (const article of articles) {
      article.hidden = !fits(article, wanted);
      shown += article.hidden ? 0 : 1;
    }
    document.getElementById("count").textContent = `${shown} of ${total}`;
    document.getElementById("none").hidden = shown > 0;
    for (const tile of document.querySelectorAll(".tile")) {
      tile.setAttribute("aria-pressed", String(tile.dataset.outcome === wanted.outcome));
    }
    return wanted;
  }

  function filtersChanged() {
    const wanted = applyFilters();
    const chosen = Object.entries(wanted).filter(([, value]) => value);
    const query = new URLSearchParams(chosen).toString();
    history.replaceState(null, "", query ? `#?${query}` : location.pathname + location.search);
  }

  function setFilters(wanted) {
    for (const [name, field] of filters) {
      const value = wanted.get(name) ?? "";
      if (field.type === "checkbox") field.checked = value !== "";
      else field.value = value;
    }
    applyFilters();
  }

  form.addEventListener("input", filtersChanged);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filtersChanged));
  for (const tile of document.querySelectorAll(".tile")) {
    tile.addEventListener("click", () => {
      const field = document.getElementById("filter-outcome");
      const pressed = tile.getAttribute("aria-pressed") === "true";
      field.value = pressed ? "" : tile.dataset.outcome;
      filtersChanged();
    });
  }

  // The panel

  // A claim's entry is a `ClaimVerdict`: {claim: {index, question, answer, kind, source}, state, consensus, votes, ...}.
  function tally(found) {
    const votes = found.votes.length;
    const options = Object.entries(found.tally).sort(([, a], [, b]) => b - a);
    const cells = options.flatMap(([option, count]) => {
      const fill = make("i");
      fill.style.width = `${(100 * count) / Math.max(votes, 1)}%`;
      const won = option === found.consensus || (found.consensus === null && found.state === "not_in_documents" && count === options[0][1]);
      return [
        make("span", { class: "option" }, option),
        make("span", { class: won ? `track won ${found.state}` : "track" }, fill),
        make("span", { class: "n" }, `${count} of ${votes}`),
      ];
    });
    return make("div", { class: "tally" }, ...cells);
  }

  // Votes that say and quote the same are one entry.
  function votes(found, show) {
    const groups = new Map();
    for (const answer of found.votes) {
      const key = JSON.stringify(answer);
      groups.set(key, [answer, (groups.get(key)?.[1] ?? 0) + 1]);
    }
    return make("ul", { class: "votes" }, ...[...groups.values()].map(([answer, count]) => vote(answer, count, show)));
  }

  function vote(answer, count, show) {
    const times = count > 1 ? make("span", { class: "soft" }, ` ${count} votes`) : null;
    if (answer === null) return make("li", { class: "soft" }, "could not be read", times);
    const item = make("li", {}, make("b", {}, answer.value === null ? "cannot answer" : answer.value), times);
    if (!answer.evidence) return item;
    item.append(make("blockquote", {}, `\u201c${answer.evidence}\u201d`));
    if (answer.evidence_at) item.append(make("button", { type: "button", onclick: () => show(answer.evidence_at) }, "show in its document"));
    else item.append(make("span", { class: "soft" }, "is in no document verbatim"));
    return item;
  }

  // Places are in code points; JavaScript's strings are not, so a text is taken apart before it is cut.
  function marked(part, spans) {
    const points = Array.from(part.text);
    const end = part.start + points.length;
    const inside = spans.filter(([from, to]) => from < end && to > part.start);
    const cuts = [...new Set([part.start, end, ...inside.flat()])]
      .filter((place) => place >= part.start && place <= end)
      .sort((a, b) => a - b);
    return cuts.slice(1).map((high, index) => {
      const low = cuts[index];
      const text = points.slice(low - part.start, high - part.start).join("");
      const isMarked = inside.some(([from, to]) => from <= low && high <= to);
      return isMarked ? make("mark", { "data-start": low }, text) : text;
    });
  }

  function documentBox(entry, spans, isOpen) {
    const text = make("div", { class: "text", tabindex: "0", dir: "auto" });
    let read = 0;
    const gap = (size) => make("span", { class: "gap" }, `${size.toLocaleString("en")} characters are not in this page`);
    for (const part of entry.parts) {
      if (part.start > read) text.append(gap(part.start - read));
      text.append(...marked(part, spans));
      read = part.start + Array.from(part.text).length;
    }
    if (read < entry.size) text.append(gap(entry.size - read));
    const head = entry.title ? `${entry.id} \u00b7 ${entry.title}` : entry.id;
    const box = make("details", { class: "document" }, make("summary", {}, head), text);
    box.open = isOpen;
    return box;
  }

  function documents(row, found) {
    const entries = row.documents.map((place) => data.documents[place]);
    const places = found.votes.filter((answer) => answer?.evidence_at).map((answer) => answer.evidence_at);
    const first = places.length ? places[0].document : entries[0].id;
    const boxes = entries.map((entry) => {
      const spans = places.filter((at) => at.document === entry.id).map((at) => [at.start, at.end]);
      return [entry.id, documentBox(entry, spans, entry.id === first), spans.length > 0];
    });
    boxes.sort(([, , holds], [, , otherHolds]) => Number(otherHolds) - Number(holds)); // evidence first
    return new Map(boxes);
  }

  function show(boxes, at) {
    const box = boxes.get(at.document);
    if (!box) return;
    box.open = true;
    const mark = [...box.querySelectorAll("mark")].find((one) => Number(one.dataset.start) >= at.start);
    if (!mark) return;
    for (const other of panel.querySelectorAll("mark.first")) other.classList.remove("first");
    mark.classList.add("first");
    const text = mark.closest(".text");
    text.scrollTop = mark.offsetTop - text.clientHeight / 3;
    const { top, bottom } = mark.getBoundingClientRect();
    const frame = panel.getBoundingClientRect();
    if (top < frame.top || bottom > frame.bottom) panel.scrollTop += top - frame.top - frame.height / 2;
  }

  function remarksOn({ claim, ...found }) {
    const said = found.note ? [found.note] : [];
    if (found.evidence_holds_consensus === false) said.push(`The evidence does not hold the ${claim.kind} that the votes agree on.`);
    return said.map((text) => make("p", { class: "remark" }, text));
  }

  const withoutConsensus = ({ claim, state }) => ({
    not_in_documents: `no such ${claim.kind}`,
    no_consensus: "do not agree",
    failed: "too few could be read",
  })[state];

  function openClaim(anchor, number, moveFocus) {
    const row = data.rows[anchor];
    const place = row.claims.findIndex(({ claim }) => claim.index === number);
    if (place < 0) return;
    const found = row.claims[place];
    const go = (step) => () => (location.hash = `${anchor}/${row.claims[place + step].claim.index}`);
    const step = (label, sign, by) =>
      Object.assign(make("button", { type: "button", "aria-label": label, onclick: go(by) }, sign), { disabled: !row.claims[place + by] });
    const boxes = documents(row, found);
    const isOpen = found.state === "no_consensus" || found.state === "failed";
    const consensus = found.consensus === null ? withoutConsensus(found) : found.consensus;
    const parts = [
      make("div", { class: "bar" },
        make("span", {}, make("span", { class: `badge ${found.state}` }, spoken(found.state)), ` ${place + 1} of ${row.claims.length}`),
        step("previous claim", "\u2190", -1), step("next claim", "\u2192", 1),
        make("button", { type: "button", "aria-label": "close", onclick: close }, "\u2715")),
      make("h3", { dir: "auto" }, found.claim.question),
      make("div", { class: "sides" },
        make("div", {}, make("span", { class: "soft" }, "the answer says"), make("b", {}, found.claim.answer)),
        make("div", { class: `answer ${found.state}` }, make("span", { class: "soft" }, isOpen ? "the votes" : "the documents say"), make("b", {}, consensus ?? "-"))),
      ...remarksOn(found),
      found.votes.length > 1 ? make("h4", {}, `Votes \u00b7 entropy ${found.entropy.toFixed(2)} nats`) : null,
      found.votes.length > 1 ? tally(found) : null,
      make("h4", {}, boxes.size === 1 ? "Document" : `${boxes.size} documents`),
      ...boxes.values(),
      make("h4", {}, "What the votes quote"),
      votes(found, (at) => show(boxes, at)),
    ];
    panel.replaceChildren(...parts.filter((part) => part !== null));
    panel.classList.add("open");
    document.body.classList.add("reading");
    panel.scrollTop = 0;
    const answer = found.votes.find((one) => one?.evidence_at);
    if (answer) show(boxes, answer.evidence_at);
    if (moveFocus) panel.focus({ preventScroll: true });
  }

  // The pieces of one number; there are several where people marked a part of it.
  function piecesOf(article, hash) {
    return [...article.querySelectorAll(".response a.num")].filter((link) => link.getAttribute("href") === hash);
  }

  function close() {
    const opened = document.querySelector(".response a.num.current");
    forget();
    history.replaceState(null, "", location.pathname + location.search);
    if (opened) opened.focus();
  }

  function forget() {
    panel.classList.remove("open");
    document.body.classList.remove("reading");
    panel.replaceChildren(hint);
    for (const one of document.querySelectorAll(".current")) one.classList.remove("current");
  }

  // The address

  function follow(isFirst) {
    const hash = location.hash;
    if (hash.startsWith("#?")) return setFilters(new URLSearchParams(hash.slice(2)));
    const [, anchor, number] = /^#(row-[^/]*)(?:\/(\d+))?$/.exec(hash) ?? [];
    const name = anchor in data.rows ? anchor : Object.keys(data.rows).find((one) => decodeURIComponent(one) === anchor);
    if (!name) return;
    const article = document.getElementById(name);
    if (article.hidden) setFilters(new URLSearchParams());
    forget();
    article.classList.add("current");
    const pieces = number ? piecesOf(article, `#${name}/${number}`) : [];
    for (const piece of pieces) piece.classList.add("current");
    const link = pieces[0];
    const target = link ?? article;
    const { top, bottom } = target.getBoundingClientRect();
    const isSheet = getComputedStyle(panel).display === "none" || getComputedStyle(panel).position === "fixed";
    const floor = number && isSheet ? innerHeight * 0.26 : innerHeight - 40;
    if (isFirst || top < 80 || bottom > floor) {
      const block = link && !isSheet ? "center" : "start";
      target.scrollIntoView({ block, behavior: isFirst ? "instant" : "auto" });
    }
    if (number) openClaim(name, Number(number), !isFirst);
  }

  addEventListener("hashchange", () => follow(false));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.matches("input, select, textarea");
    if (event.key === "Escape" && panel.classList.contains("open")) close();
    else if (event.key === "/" && !isTyping) {
      event.preventDefault();
      document.getElementById("filter-text").focus();
    } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && !isTyping && panel.classList.contains("open")) {
      const label = event.key === "ArrowLeft" ? "previous claim" : "next claim";
      const button = panel.querySelector(`[aria-label="${label}"]`);
      if (button && !button.disabled) button.click();
    }
  });
  applyFilters();
  follow(true);
})();
