import { createPacer } from '../../../foundation/concurrency/in-slices.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { RepositoryTrust } from '../../trust/repository-trust.ts';
import type { OwnStatements } from '../facts/own-statements.ts';
import type { RecordFact } from '../facts/record-fact.ts';
import type { TipFact } from '../facts/tip-fact.ts';

/** Statements that are checked before their revisions are shown; more of them, as at a first start, are checked behind. */
export const MAX_CHECKED_AT_ONCE = 256;
/** Checks under way at once. They run in the thread pool, so that the event loop stays free. */
const MAX_CONCURRENT_CHECKS = 8;

/** A statement whose signature was not checked yet. */
export type Unchecked = { readonly oid: Oid; readonly package: string } & (
  | { readonly fact: RecordFact }
  /** `ref` is that of the publication. */
  | { readonly tip: TipFact; readonly ref: string }
);

/** The object that has the statement: a tag on the commit of this process can have another one. */
export function carrierOf(item: Unchecked): Oid {
  return ('tip' in item ? item.tip.text.value.statementTag : undefined) ?? item.oid;
}

/** Checks signatures and notes the result in the facts. */
export async function checkSignatures(
  unchecked: readonly Unchecked[],
  trust: RepositoryTrust,
  ownStatements: Pick<OwnStatements, 'signerOf'>,
): Promise<void> {
  let next = 0;
  // The payload of each statement is written again for its check.
  const pause = createPacer();
  const worker = async () => {
    for (let item = unchecked[next]; item !== undefined; item = unchecked[next]) {
      next += 1;
      await pause();
      const fact = 'fact' in item ? item.fact : item.tip;
      const signed = 'fact' in item ? item.fact.signed : item.tip.text.value.facts.statement;
      if (fact.signer !== undefined || signed === undefined) continue;
      const own = ownStatements.signerOf(carrierOf(item));
      if (own !== undefined && 'fact' in item) item.fact.isOwn = true;
      fact.signer = own ?? (await trust.signerOf(signed));
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_CHECKS }, worker));
}
