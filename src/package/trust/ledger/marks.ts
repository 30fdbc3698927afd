import type { Mark, NewMark, StatementScope } from './trust-ledger.ts';

/**
 * The mark of a scope after one entry of `TrustLedger.raise`; the current one itself if the entry changes nothing. A mark never
 * decreases. An entry with the current sequence and another digest is a second statement at the same position; the first one counts.
 */
export function raisedMark(present: Mark | undefined, entry: NewMark, order: number): Mark {
  const { sequence, digest, proven } = entry;
  if (present === undefined || sequence > present.sequence) return { sequence, digest, proven, order };
  const proves = sequence === present.sequence && digest === present.digest && proven && !present.proven;
  return proves ? { ...present, proven } : present;
}

/** Scopes as keys of a map. */
export function scopeText({ repository, package: path, workspace }: StatementScope): string {
  return JSON.stringify([repository, path, workspace]);
}

/** What the keys of a repository begin with. */
export function scopePrefix(repository: string): string {
  return `${JSON.stringify([repository]).slice(0, -1)},`;
}

export function scopeOfText(text: string): StatementScope {
  const [repository, path, workspace] = JSON.parse(text) as [string, string, string];
  return { repository, package: path, workspace };
}

/** True for the digest of a statement: marks without one, such as those of publications and deleted drafts, have other texts. */
export function isStatementDigest(digest: string): boolean {
  return /^[0-9a-f]{64}$/.test(digest);
}
