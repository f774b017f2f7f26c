// Copy text, also where the clipboard is closed to pages (plain http, a file from disk).

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// A button's label says for a moment that it is done.
export async function copyFrom(control, text) {
  const label = control.textContent;
  control.textContent = (await copy(text)) ? "Copied" : "Not allowed here";
  setTimeout(() => { control.textContent = label; }, 1500);
}
