// What policies would have done with a transcript.
import { h, put } from "./dom.js";
export async function showReplay(main) {
  put(main, h("div", { class: "page" }, h("h1", {}, "Replay")));
  return () => {};
}
