import { SluiceError } from '../../../foundation/sluice-error.ts';
import { commonPrefix, commonSuffix } from './common-bytes.ts';

const OID_BYTES = 20;

/** The stretch in which two trees differ, in each of them, from one entry's beginning to another's end. */
export interface TreeWindow {
  readonly base: Buffer;
  readonly target: Buffer;
}

/**
 * Finds where two trees differ without parsing all of them: of a folder with a thousand packages one entry changes at a time. All
 * outside of the windows is the same in both.
 */
export function treeWindow(base: Buffer, target: Buffer): TreeWindow {
  const most = Math.min(base.length, target.length);
  const before = commonPrefix(base, target, most);
  const behind = commonSuffix(base, target, most - before);
  const start = boundary(target, 0, before, false);
  const end = boundary(target, start, target.length - behind, true);
  // The bytes after the window are the same in base and target; but in the base they may begin within a name.
  const baseEnd = base.length - (target.length - end);
  if (boundary(base, start, baseEnd, true) !== baseEnd) return { base, target };
  return { base: base.subarray(start, baseEnd), target: target.subarray(start, end) };
}

/** From one beginning of an entry on, the last one up to a place, or the first one from there on. */
function boundary(tree: Buffer, from: number, place: number, after: boolean): number {
  let at = from;
  while (at < place) {
    const nul = tree.indexOf(0, at);
    const next = nul + 1 + OID_BYTES;
    if (nul < 0 || next > tree.length)
      throw new SluiceError('Corrupt', 'a tree is cut off. Run "git fsck" in the repository');
    if (next > place && !after) return at;
    at = next;
  }
  return at;
}
