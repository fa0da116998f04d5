// Tokens and money by day, project, model and session.
import { h, put } from "./dom.js";
export async function showMoney(main) {
  put(main, h("div", { class: "page" }, h("h1", {}, "Money")));
  return () => {};
}
