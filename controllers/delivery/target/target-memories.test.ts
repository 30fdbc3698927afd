import { expect, test } from 'vitest';
import { BranchFiles } from '../../../src/delivery/tree/branch-files.ts';
import { TargetMemories } from './target-memories.ts';
import { TargetMemory } from './target-memory.ts';

/** Delivers targets of 100 files in this order, and returns how many found their memory. */
function hitsOf(memories: TargetMemories, targets: readonly string[]): number {
  return targets.filter((key) => {
    const memory = memories.take(key);
    const isKnown = memory.bytes > 0;
    if (!isKnown) fill(memory);
    memories.put(key, memory);
    return isKnown;
  }).length;
}

function fill(memory: TargetMemory): void {
  const edits = new Map(Array.from({ length: 100 }, (_, index) => [`file-${index}`, new Uint8Array()]));
  memory.committed(new BranchFiles(''), 'site.git', 'head', edits);
}

/** The bytes of one such target. */
function bytesOfOne(): number {
  const memory = new TargetMemory();
  fill(memory);
  return memory.bytes;
}

const fleet = Array.from({ length: 25 }, (_, index) => `t${index}`);

test('of a fleet that has not room as a whole, the targets that have a place find it in each round', () => {
  const memories = new TargetMemories(17 * bytesOfOne());
  expect(hitsOf(memories, fleet)).toBe(0);
  for (let round = 0; round < 4; round += 1) expect(hitsOf(memories, fleet)).toBe(17);
  // All are woken at once, and end in another order.
  const taken = fleet.map((key) => [key, memories.take(key)] as const);
  for (const [key, memory] of taken.toReversed()) {
    if (memory.bytes === 0) fill(memory);
    memories.put(key, memory);
  }
  expect(hitsOf(memories, fleet)).toBe(17);
});

test('a target that is delivered often gets the place of one that is not', () => {
  const memories = new TargetMemories(bytesOfOne());
  expect(hitsOf(memories, ['idle', 'busy'])).toBe(0);
  expect(
    hitsOf(
      memories,
      Array.from({ length: 8 }, () => 'busy'),
    ),
  ).toBeGreaterThan(0);
  expect(hitsOf(memories, ['busy', 'idle', 'busy'])).toBe(2);
});

test('a forgotten target gives its place to another one', () => {
  const memories = new TargetMemories(bytesOfOne());
  hitsOf(memories, ['old', 'new']);
  memories.forget('old');
  expect(hitsOf(memories, ['new', 'new'])).toBe(1);
});

test('a memory whose change failed is not kept, and one that is too large leaves the others', async () => {
  const memories = new TargetMemories(2 * bytesOfOne());
  hitsOf(memories, ['a', 'b']);
  const broken = memories.take('b');
  await expect(broken.change(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  memories.put('b', broken);
  const large = memories.take('large');
  const edits = new Map(Array.from({ length: 300 }, (_, index) => [`file-${index}`, new Uint8Array()]));
  large.committed(new BranchFiles(''), 'site.git', 'head', edits);
  memories.put('large', large);
  expect(hitsOf(memories, ['a', 'b', 'large'])).toBe(1);
});
