// Sets the colour scheme before the first paint: the user's choice, or that of the system.
"use strict";
(() => {
  const chosen = localStorage.getItem("foldline-theme");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = chosen || (dark ? "dark" : "light");
})();
