import type { PullRequest, Review } from '../../../src/forge/forge.ts';
import { findingsBelow } from '../../../src/function/lint/finding.ts';
import { type IssuedCondition, RENDERED_TYPE } from '../../../src/package/model/gates/verdict.ts';
import { REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import type { Rendering } from '../../../src/package/plan/ports/renderer.ts';
import { changesRequestedBy } from '../../pull-request/reviews/verdicts.ts';
import { plainLine } from '../../pull-request/text/quote.ts';
import type { JudgedPackage } from '../judging/judge-package.ts';

const MAX_MESSAGE_CHARACTERS = 1000;

/**
 * What the pull request says about one of its packages: whether reviewers request changes, and whether the merged files are valid and rendered. Of
 * them, the Kptfile in the commit of the host can have nothing.
 */
export function mergedConditions(
  path: string,
  findings: JudgedPackage['findings'],
  pull: PullRequest,
  changesRequested: readonly Review[] | undefined,
): readonly IssuedCondition[] {
  const reviewed = { type: REVIEWED_TYPE, ...reviewedStatus(changesRequested), external: [factOf(pull)] };
  const [problem] = findingsBelow(path, findings).filter(({ severity }) => severity === 'error');
  if (problem === undefined) return [reviewed];
  const message = plainLine(`${problem.file}:${problem.line}: ${problem.message}`, MAX_MESSAGE_CHARACTERS);
  return [reviewed, { type: RENDERED_TYPE, status: 'False', reason: problem.code, message }];
}

/** Conditions of functions are about files as these would be; they count only if the merged package has the files. */
export function countedRendering(rendering: Rendering | undefined): Rendering | undefined {
  return (rendering?.edits?.size ?? 0) === 0 ? rendering : undefined;
}

/** `changesRequested` is undefined where there are too many reviews to know it: then it is unknown. */
export function reviewedStatus(
  changesRequested: readonly Review[] | undefined,
): Pick<IssuedCondition, 'status'> & { readonly reason: string; readonly message: string } {
  if (changesRequested === undefined)
    return { status: 'Unknown', reason: 'NotRead', message: 'the pull request has too many reviews to read them' };
  if (changesRequested.length === 0)
    return { status: 'True', reason: 'NoChangesRequested', message: 'no reviewer requests changes' };
  return { status: 'False', reason: 'ChangesRequested', message: changesRequestedBy(changesRequested) };
}

function factOf({ url, number, closedAt, updatedAt }: PullRequest) {
  return { source: url, id: String(number), value: 'merged', time: closedAt ?? updatedAt };
}
