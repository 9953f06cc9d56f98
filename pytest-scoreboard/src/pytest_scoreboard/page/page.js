"use strict";
(async () => {
  const decode = (text) => {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const raw = atob(text), found = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
    return found;
  };
  const bytes = decode(document.getElementById("data").textContent.trim());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = JSON.parse(await new Response(stream).text());
  const word = {}, glyph = {}, tone = {};
  for (const [code, w, g, t] of data.states) { word[code] = w; glyph[code] = g; tone[code] = t; }
  const MISSING = -2, NOT_RUN = -1, PASSED = 0, NOT_SAMPLED = 10, FIRST = 25, CHUNK = 150, TONES = ["none", "good", "warn", "hollow", "bad"];
  const $ = (id) => document.getElementById(id);
  const make = (tag, attrs = {}, ...kids) => {
    const node = document.createElement(tag);
    for (const [k, v] of Object.entries(attrs)) if (v !== null) node.setAttribute(k, v);
    node.append(...kids);
    return node;
  };
  // A cell: [state, modes, variants, seconds, asserts, value, gradient, attempts, url, detail, node,
  //          remark, change, history, parts, message]; trailing nothings are left out, and so is a
  // node that is the backend's name.
  const STATE = 0, MODES = 1, TESTS = 2, TIME = 3, ASSERTS = 4, VALUE = 5, GRADIENT = 6, ATTEMPTS = 7,
    URL_ = 8, DETAIL = 9, NODE = 10, REMARK = 11, CHANGE = 12, HISTORY = 13, PARTS = 14, MESSAGE = 15;

  // The age of the data, from its own date: a page that nobody renders again grows old by itself.
  const ago = (s) => s < 5400 ? `${Math.round(s / 60)} minutes` : s < 172800 ? `${Math.round(s / 3600)} hours` : `${Math.round(s / 86400)} days`;
  if (data.finished) {
    const age = (Date.now() - Date.parse(data.finished)) / 1000;
    $("age").textContent = age < 60 ? ", just now" : `, ${ago(age)} ago`;
    const stale = age > data.maxAge;
    $("fresh").textContent = stale ? "Stale" : "Fresh";
    $("fresh").className = `pill ${stale ? "bad" : "good"}`;
  }

  const view = { q: "", show: new Set(), mode: "", off: new Set(), open: new Set(), cell: "" };
  const key = (s, r, b) => [s, r, b].join("\u001f");
  const read = () => {
    const p = new URLSearchParams(location.hash.slice(1));
    view.q = p.get("q") || "";
    view.show = new Set((p.get("show") || "").split(",").filter(Boolean));
    view.mode = p.get("mode") || "";
    view.off = new Set(p.getAll("off"));
    view.open = new Set(p.getAll("open"));
    view.cell = p.get("cell") || "";
  };
  const write = () => {
    const p = new URLSearchParams();
    if (view.q) p.set("q", view.q);
    if (view.show.size) p.set("show", [...view.show].join(","));
    if (view.mode) p.set("mode", view.mode);
    for (const device of view.off) p.append("off", device);
    for (const title of view.open) p.append("open", title);
    if (view.cell) p.set("cell", view.cell);
    history.replaceState(null, "", "#" + p.toString());
  };

  const isThere = (cell) => cell[STATE] !== MISSING && cell[STATE] !== NOT_SAMPLED;
  const stateIn = (cell) => {
    if (!view.mode) return cell[STATE];
    const found = (cell[MODES] || [])[data.modes.indexOf(view.mode)];
    return found ?? (isThere(cell) ? NOT_RUN : cell[STATE]);
  };
  // The rows of a suite stay packed until they are looked at.
  const rowsOf = (suite) => suite.rows || (suite.rows = JSON.parse(suite.packed));
  const plain = () => !view.q && !view.show.size && !view.mode;
  const isOn = (column) => !view.off.has(column.device);
  const wanted = (suite, row) => {
    if (view.q && !(row[0] + " " + suite.title).toLowerCase().includes(view.q.toLowerCase())) return false;
    const cells = row[1].filter((_, i) => isOn(data.columns[suite.at[i]]));
    if (view.show.has("failing") && !cells.some((c) => tone[stateIn(c)] === "bad" || stateIn(c) === 9 || stateIn(c) === 5)) return false;
    if (view.show.has("changed") && !cells.some((c) => c[CHANGE])) return false;
    if (view.show.has("disagree") && new Set(cells.map(stateIn).filter((s) => s !== NOT_SAMPLED)).size < 2) return false;
    return true;
  };
  const short = (e) => e === null || e === undefined ? "" : e < 0 ? "∞" : e >= 1e4 ? e.toExponential(0) : String(+e.toPrecision(2));
  const modesOf = (cell, backend) => data.modes.map((mode, i) => {
    const s = (cell[MODES] || [])[i];
    if (s !== undefined && s !== null) return `${mode} ${glyph[s]}`;
    const why = (data.absent[backend] || {})[mode];
    return why ? `no ${mode}` : `${mode} not run`;
  });

  const cellNode = (suite, row, i) => {
    const cell = row[1][i], backend = suite.columns[i], s = stateIn(cell);
    const top = make("span", { class: "top" }, make("span", { "aria-hidden": "true" }, glyph[s]), word[s]);
    if (cell[CHANGE]) top.append(make("span", { class: "chg" }, cell[CHANGE]));
    const sub = [];
    if (isThere(cell) && data.modes.length) sub.push(modesOf(cell, backend).join(" · "));
    if (cell[VALUE] !== undefined && cell[VALUE] !== null) top.append(make("span", { class: "ulp" }, `${short(cell[VALUE])} ulp`));
    if (typeof cell[TESTS] === "string") sub.push(`${cell[TESTS]} variants`);
    if (cell[REMARK]) sub.push("known hollow");
    const who = make("span", { class: "who" }, (backend || "no backend").slice(0, 300));
    const button = make("button", { class: `cell ${tone[s]}`, type: "button" }, who, top);
    if (sub.length) button.append(make("span", { class: "sub" }, sub.join(" · ")));
    button.addEventListener("click", () => open(suite, row, i, button));
    return make("td", {}, button);
  };

  // The share of passed cells, from the number of cells in each state; as `_share` in page.py.
  const share = (counts, { name, device }) => {
    let total = 0, worst = "none", passed = counts[PASSED] || 0;
    const rest = [];
    for (const [code] of data.states) {
      const n = counts[code] || 0;
      if (!n || code === MISSING) continue;
      if (code !== NOT_RUN && code !== NOT_SAMPLED) total += n;
      const meant = device || (view.mode && (data.absent[name] || {})[view.mode]);
      const own = code === NOT_RUN && !meant ? "warn" : tone[code];
      if (TONES.indexOf(own) > TONES.indexOf(worst)) worst = own;
      if (code !== PASSED) rest.push(`${n} ${word[code]}`);
    }
    if (!total && !rest.length) return null;
    return {
      tone: worst, text: total ? `${Math.floor(100 * passed / total)} %` : word[counts[NOT_RUN] ? NOT_RUN : NOT_SAMPLED],
      sub: [...(total ? [`${passed} of ${total}`] : []), ...rest].join(", "),
    };
  };

  // The matrix is in the page; the script counts again when a filter or a switch changes, and adds
  // rows of tests below a suite when it is opened.
  const board = $("board"), bodies = new Map();
  board.style.setProperty("--wide", `${18 + 7.5 * data.columns.length}rem`);  // room for a word in every cell
  const draw = (td, counts, column, href) => {
    const found = share(counts, column);
    td.className = found ? `share ${found.tone}` : "";
    const parts = found ? [make("b", {}, found.text), " ", make("span", { class: "sub" }, found.sub)] : [];
    td.replaceChildren(...(found && href ? [make("a", { href, tabindex: "-1" }, ...parts)] : parts));
  };
  const add = (to, from) => { for (const [code, n] of Object.entries(from)) to[code] = (to[code] || 0) + n; };
  const clear = (node) => { while (node.rows.length > 1) node.lastChild.remove(); };
  const fill = (entry) => {
    const { suite, node } = entry, rows = rowsOf(suite).filter((row) => wanted(suite, row));
    const now = entry.filled = {};  // a later call ends this one
    clear(node);
    let next = 0;
    const grow = (end) => {
      const part = document.createDocumentFragment();
      for (const row of rows.slice(next, end)) {
        const name = row[0].length > 300 ? row[0].slice(0, 300) + "…" : row[0];
        const line = make("tr", { class: "test" }, make("th", { scope: "row" }, make("bdi", {}, name)));
        data.columns.forEach((column, c) => {
          const i = suite.at.indexOf(c);
          const td = i < 0 ? make("td") : cellNode(suite, row, i);
          td.hidden = !isOn(column);
          line.append(td);
        });
        part.append(line);
      }
      next = end;
      node.append(part);
    };
    const offer = () => {
      if (next >= rows.length) return;
      const button = make("button", { type: "button" }, `Show ${Math.min(CHUNK, rows.length - next)} more of ${rows.length}`);
      const line = make("tr", { class: "more" }, make("td", { colspan: String(data.columns.length + 1) }, button));
      button.addEventListener("click", () => {
        const before = line.previousSibling;
        line.remove(); grow(next + CHUNK); offer();
        before.nextSibling?.querySelector("button")?.focus();
      });
      node.append(line);
    };
    grow(FIRST);  // what a screen shows, at once; the rest after it is painted
    if (rows.length > FIRST) setTimeout(() => { if (entry.filled === now) { grow(CHUNK); offer(); } }, 50);
  };
  // Rows are built when a suite is opened, and thrown away when it is closed.
  const toggle = (entry, on) => {
    entry.link.setAttribute("aria-expanded", String(on));
    if (on) { fill(entry); view.open.add(entry.suite.title); } else { entry.filled = null; clear(entry.node); view.open.delete(entry.suite.title); }
  };
  [...board.tBodies].slice(1).forEach((node, i) => {
    const suite = data.suites[i], line = node.rows[0], link = line.cells[0].querySelector("a");
    suite.at = suite.columns.map((name) => data.columns.findIndex((c) => c.name === name));
    const entry = { suite, node, line, link };
    link.setAttribute("aria-expanded", "false");
    line.querySelectorAll("td a").forEach((a) => a.setAttribute("tabindex", "-1"));
    line.addEventListener("click", (e) => {
      if (!e.target.closest("a") || e.ctrlKey || e.metaKey || e.shiftKey) return;
      e.preventDefault();
      toggle(entry, !view.open.has(suite.title));
      write();
    });
    bodies.set(suite.title, entry);
  });
  const written = new Map([...board.querySelectorAll("#all td, tr.suite > td")].map((td) => [td, [td.className, [...td.childNodes]]]));
  const restore = (td) => { const [name, kids] = written.get(td); td.className = name; td.replaceChildren(...kids); };
  let asWritten = true;
  const refresh = () => {
    let tests = 0, suites = 0;
    const sums = data.columns.map(() => ({}));
    const again = !plain();
    if (plain() && !asWritten) for (const td of written.keys()) restore(td);
    for (const entry of bodies.values()) {
      const { suite, node, line, link } = entry;
      let count = suite.count;
      if (again) {
        const rows = rowsOf(suite).filter((row) => wanted(suite, row));
        const counts = suite.columns.map(() => ({}));
        for (const row of rows) row[1].forEach((c, i) => { const s = stateIn(c); counts[i][s] = (counts[i][s] || 0) + 1; });
        count = rows.length;
        suite.at.forEach((c, i) => {
          add(sums[c], counts[i]);
          draw(line.cells[c + 1], counts[i], data.columns[c], link.getAttribute("href"));
        });
      }
      node.hidden = !count;
      tests += count; suites += count ? 1 : 0;
      if (view.open.has(suite.title)) fill(entry);
    }
    if (again) data.columns.forEach((column, c) => draw($("all").rows[0].cells[c + 1], sums[c], column, ""));
    asWritten = plain();
    for (const line of board.querySelectorAll("thead tr, tr.suite"))
      data.columns.forEach((column, c) => { line.cells[c + 1].hidden = !isOn(column); });
    $("all").rows[0].cells[0].textContent = `all ${suites} suite${suites === 1 ? "" : "s"}`;
    $("found").textContent = `${tests} test${tests === 1 ? "" : "s"} in ${suites} suite${suites === 1 ? "" : "s"}`;
  };

  const dialog = $("cell");
  let back = null;
  const line = (list_, term, value) => { if (value || value === 0) list_.append(make("dt", {}, term), make("dd", {}, value)); };
  const open = (suite, row, i, from) => {
    const cell = row[1][i], backend = suite.columns[i] || "no backend";
    back = from || null;
    view.cell = key(suite.title, row[0], suite.columns[i]);
    write();
    const s = cell[STATE], facts = make("dl");
    line(facts, "state", make("span", { class: `tag ${tone[s]}` }, `${glyph[s]} ${word[s]}`));
    line(facts, "backend", backend);
    line(facts, "suite", make("bdi", {}, suite.title));
    if (data.modes.length && isThere(cell)) line(facts, "modes", modesOf(cell, backend).join(", ") + Object.entries(data.absent[backend] || {}).map(([m, w]) => ` (${m}: ${w})`).join(""));
    line(facts, "variants", cell[TESTS]);
    if (cell[ASSERTS] !== undefined && cell[ASSERTS] !== null) line(facts, "assertions", String(cell[ASSERTS]));
    if (cell[VALUE] !== undefined && cell[VALUE] !== null) line(facts, "worst error", `${short(cell[VALUE])} ulp against the reference`);
    if (cell[GRADIENT] !== undefined && cell[GRADIENT] !== null) line(facts, "of gradients", `${short(cell[GRADIENT])} ulp`);
    if (cell[TIME]) line(facts, "time", `${cell[TIME]} s`);
    if (cell[ATTEMPTS] > 1) line(facts, "attempts", `${cell[ATTEMPTS]}: flaky`);
    line(facts, "since run " + data.base, cell[CHANGE]);
    line(facts, "remark", cell[REMARK]);
    line(facts, "history", cell[HISTORY] ? cell[HISTORY].map((c) => glyph[c] + " " + word[c]).join(", ") : null);
    const url = cell[URL_];
    if (url && /^https?:\/\//.test(url)) line(facts, "log", make("a", { href: url, rel: "noopener noreferrer" }, url));
    const kids = [make("h2", { id: "cell-title", tabindex: "-1" }, make("bdi", {}, row[0])), facts];
    if (suite.file) {
      const node = cell[NODE] ?? suite.columns[i];
      const id = `${suite.file}::${row[0]}${node ? `[${node === "][" ? "" : node}]` : ""}`;
      const command = "pytest '" + id.replaceAll("'", `'"'"'`) + "'";
      const code = make("code", { id: "command" }, command);
      const button = make("button", { type: "button", class: "plain", id: "copy" }, "Copy command");
      button.addEventListener("click", async () => {
        try { await navigator.clipboard.writeText(command); } catch {
          const range = document.createRange(); range.selectNodeContents(code);
          const sel = getSelection(); sel.removeAllRanges(); sel.addRange(range); document.execCommand("copy");
        }
        button.textContent = "Copied";
      });
      kids.push(make("p", {}, "Run it again:"), make("div", { class: "copy" }, code, button));
    }
    if (cell[MESSAGE]) kids.push(make("p", {}, make("bdi", {}, cell[MESSAGE])));
    const text = cell[DETAIL] === undefined || cell[DETAIL] === null ? "" : data.details[cell[DETAIL]];
    if (text) kids.push(make("pre", { tabindex: "0", role: "region", "aria-label": "traceback" }, text));
    for (const [variant, mode, code, detail] of cell[PARTS] || []) {
      const more = make("details", {}, make("summary", {}, `${glyph[code]} ${word[code]} ${mode} `, make("bdi", {}, variant)));
      if (detail !== null && data.details[detail]) more.append(make("pre", { tabindex: "0", role: "region", "aria-label": "traceback" }, data.details[detail]));
      kids.push(more);
    }
    $("cell-body").replaceChildren(...kids);
    if (!dialog.open) dialog.showModal();
    $("cell-title").focus();
  };
  $("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { view.cell = ""; write(); if (back && back.isConnected) back.focus(); });

  const find = (wantedKey) => {
    const [s, r, b] = wantedKey.split("\u001f");
    const entry = bodies.get(s);
    const row = entry && rowsOf(entry.suite).find((x) => x[0] === r);
    return row ? [entry.suite, row, entry.suite.columns.indexOf(b)] : null;
  };
  board.addEventListener("keydown", (e) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
    const at = e.target.closest("td, th");
    if (!step || !at) return;
    const rows = [...board.querySelectorAll("tbody:not([hidden]) > tr")];
    let row = rows.indexOf(at.parentNode), column = at.cellIndex, to = null;
    do {  // over cells with nothing to open
      row += step[0]; column += step[1];
      to = rows[row]?.cells[step[0] ? Math.min(column, rows[row].cells.length - 1) : column];
    } while (to && (to.hidden || !to.querySelector("button, a")));
    if (to) { to.querySelector("button, a").focus(); e.preventDefault(); }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/INPUT|SELECT/.test(e.target.tagName) && !dialog.open) { $("tools").open = true; $("q").focus(); e.preventDefault(); }
  });

  const modes = document.getElementsByName("mode"), devices = document.getElementsByName("device");
  const apply = () => {
    read();
    $("q").value = view.q;
    for (const name of ["failing", "changed", "disagree"]) $(name).checked = view.show.has(name);
    for (const box of modes) box.checked = box.value === view.mode;
    for (const box of devices) box.checked = !view.off.has(box.value);
    for (const [title, entry] of bodies) toggle(entry, view.open.has(title));
    refresh();
    const shown = view.cell && find(view.cell);
    if (shown && shown[2] >= 0) open(...shown, null);
  };
  let timer = 0;
  $("q").addEventListener("input", (e) => { view.q = e.target.value; clearTimeout(timer); timer = setTimeout(() => { refresh(); write(); }, 60); });
  for (const name of ["failing", "changed", "disagree"])
    $(name).addEventListener("change", (e) => { e.target.checked ? view.show.add(name) : view.show.delete(name); refresh(); write(); });
  for (const box of modes) box.addEventListener("change", () => { view.mode = box.value; refresh(); write(); });
  for (const box of devices)
    box.addEventListener("change", () => { box.checked ? view.off.delete(box.value) : view.off.add(box.value); refresh(); write(); });
  addEventListener("hashchange", () => { if (!document.getElementById(location.hash.slice(1))) apply(); });
  for (const link of document.querySelectorAll("a[data-cell]"))
    link.addEventListener("click", (e) => {
      const shown = find(link.dataset.cell);
      if (shown) { e.preventDefault(); open(...shown, link); }
    });
  apply();
  $("tools").hidden = false;
  const narrow = matchMedia("(max-width: 42rem)"), fold = () => { $("tools").open = !narrow.matches || !plain(); };
  narrow.addEventListener("change", fold);
  fold();
  document.body.dataset.ready = "yes";
})();
