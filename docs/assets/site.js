// What the theme's pages lack for screen readers and keyboards: names for the unnamed <nav> of each code block, focus for
// tables and code that scroll, and no empty cells that claim to be headers.
const mend = () => {
  document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((nav, i) => {
    nav.setAttribute("aria-label", `Code block ${nav.querySelector("button")?.dataset.clipboardTarget ?? i}`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((wrap) => {
    wrap.setAttribute("tabindex", "0");
    wrap.setAttribute("role", "group");
    wrap.setAttribute("aria-label", "Table");
  });
  document.querySelectorAll("article th:empty").forEach((th) => th.replaceWith(document.createElement("td")));
};
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
