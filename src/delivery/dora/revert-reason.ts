/** The reason of the proposal of a revert, by which its record names the revision that it reverts. `more` is the text of the user. */
export function revertReason(reverted: number, restored: number, more: string | undefined): string {
  return `reverts v${reverted} to v${restored}${more === undefined ? '' : `: ${more}`}`;
}

/** The revision that a reason of `revertReason` reverts; undefined for other reasons. */
export function revertedIn(reason: string): number | undefined {
  const [, number] = /^reverts v(\d{1,9}) to v\d{1,9}(?:: |$)/.exec(reason) ?? [];
  return number === undefined ? undefined : Number(number);
}
