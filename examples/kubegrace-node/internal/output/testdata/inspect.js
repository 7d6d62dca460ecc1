// Returns a list of texts, one for each part of the page that cannot be read.
(() => {
  const problems = [];
  const name = (e) => `<${e.tagName.toLowerCase()} class="${e.className}"> ${(e.textContent || "").trim().slice(0, 40)}`;
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) problems.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);

  const channels = (color) => {
    const parts = color.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  };
  // Relative luminance and contrast ratio are defined in WCAG 2.
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (e) => {
    for (; e; e = e.parentElement) {
      const c = channels(getComputedStyle(e).backgroundColor);
      if (c.alpha === 1) return c.rgb;
    }
    return [255, 255, 255];
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };

  for (const e of document.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (box.width === 0) continue;
    if (box.left < -0.5 || box.right > width + 0.5) problems.push(`cut off at ${box.left} to ${box.right}: ${name(e)}`);
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline") problems.push(`what is in it is wider: ${name(e)}`);
    const hasText = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
    if (!hasText) continue;
    const style = getComputedStyle(e);
    if (parseFloat(style.fontSize) < 12) problems.push(`letters of ${style.fontSize}: ${name(e)}`);
    const c = contrast(channels(style.color).rgb, background(e));
    if (c < 4.5) problems.push(`contrast of ${c.toFixed(1)}: ${name(e)}`);
  }
  for (const bar of document.querySelectorAll(".bar")) {
    const c = contrast(channels(getComputedStyle(bar).backgroundColor).rgb, background(bar.parentElement));
    if (!bar.classList.contains("open") && c < 3) problems.push(`bar with a contrast of ${c.toFixed(1)}`);
  }
  for (const axis of document.querySelectorAll(".axis")) {
    const labels = [...axis.children].map((e) => e.getBoundingClientRect()).sort((a, b) => a.left - b.left);
    for (let i = 1; i < labels.length; i++) {
      if (labels[i].left < labels[i - 1].right) problems.push(`labels cover each other at ${labels[i].left}`);
    }
  }
  return problems;
})()
