// Makes a picture small enough for the repository: a PNG of at most 256 colours, of which every hue has
// one. The others, which smooth the edges of letters, become the nearest of those.
import { crc32 as crc, deflateSync, inflateSync } from 'node:zlib';

const COLOURS_MAX = 256;
const HUES_MAX = 180; // the rest are the most frequent colours
const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

export function palette(png) {
  const { width, height, depth, pixels } = decoded(png);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += depth) {
    const colour = (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const frequent = [...counts].sort((one, other) => other[1] - one[1]).map(([colour]) => colour);
  const hues = new Map(frequent.toReversed().map((colour) => [colour & 0xe0e0e0, colour]));
  const chosen = [...new Set([...frequent.filter((colour) => hues.get(colour & 0xe0e0e0) === colour).slice(0, HUES_MAX), ...frequent])].slice(0, COLOURS_MAX);
  const numbers = new Map([...counts.keys()].map((colour) => [colour, nearest(colour, chosen)]));
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0, from = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1, from += depth) {
      lines[y * (width + 1) + 1 + x] = numbers.get((pixels[from] << 16) | (pixels[from + 1] << 8) | pixels[from + 2]);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8); // eight bits, by a palette
  const colours = Buffer.from(chosen.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk('IHDR', head), chunk('PLTE', colours), chunk('IDAT', deflateSync(lines, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

function nearest(colour, chosen) {
  const apart = (one, other) => [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
  return chosen.reduce((best, other, at) => (apart(colour, other) < apart(colour, chosen[best]) ? at : best), 0);
}

function chunk(kind, data) {
  const named = Buffer.concat([Buffer.from(kind), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc(named));
  return Buffer.concat([length, named, sum]);
}

// The pixels of a picture as the browser writes it: eight bits, no interlacing.
function decoded(png) {
  const parts = [];
  let head;
  for (let at = SIGNATURE.length; at < png.length;) {
    const [length, kind] = [png.readUInt32BE(at), png.toString('latin1', at + 4, at + 8)];
    const data = png.subarray(at + 8, at + 8 + length);
    if (kind === 'IHDR') head = data;
    if (kind === 'IDAT') parts.push(data);
    at += length + 12;
  }
  const [width, height, depth] = [head.readUInt32BE(0), head.readUInt32BE(4), head[9] === 6 ? 4 : 3];
  return { width, height, depth, pixels: unfiltered(inflateSync(Buffer.concat(parts)), width * depth, height, depth) };
}

function unfiltered(raw, length, height, depth) {
  const pixels = Buffer.alloc(length * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (length + 1)];
    for (let x = 0; x < length; x += 1) {
      const to = y * length + x;
      const left = x >= depth ? pixels[to - depth] : 0;
      const above = y ? pixels[to - length] : 0;
      const corner = x >= depth && y ? pixels[to - length - depth] : 0;
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
      pixels[to] = raw[y * (length + 1) + 1 + x] + guess;
    }
  }
  return pixels;
}

function paeth(left, above, corner) {
  const guess = left + above - corner;
  const [a, b, c] = [left, above, corner].map((value) => Math.abs(guess - value));
  return a <= b && a <= c ? left : b <= c ? above : corner;
}
