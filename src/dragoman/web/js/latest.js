// Drawing that waits for numbers.

import { note } from "./controls.js";

// Run an asynchronous drawing so that only the last one asked for is shown, and a refusal is told in its place.
export function latest(work, fail) {
  let turn = 0;
  return async (...given) => {
    const mine = (turn += 1);
    try {
      const draw = await work(...given);
      if (mine === turn) draw?.();
    } catch (error) {
      if (mine === turn) fail(note(error.message));
    }
  };
}
