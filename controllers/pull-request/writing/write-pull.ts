import type { Check, PullRequest } from '../../../src/forge/forge.ts';
import { canonicalJson, digest } from '../../../src/foundation/text/canonical-json.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import { type CheckContext, setQueuedChecks } from '../checks/queued-checks.ts';
import { type OpenContext, preparePull } from '../opening/open-pull.ts';
import type { ShownPull } from '../shown-proposals.ts';
import { withPrepared, withSection } from '../text/section.ts';

/** Sets the checks of the head of a pull request, which has these packages, unless they are what was set last. */
export async function writeChecks(
  context: CheckContext,
  entry: ShownPull,
  commit: string,
  checks: readonly Check[],
  packages: readonly Revision[],
): Promise<void> {
  const text = checksTextOf(commit, checks);
  if (entry.checks === text) return;
  // A commit that was pushed since has none yet.
  const isNext = entry.checks !== undefined && !hasChecksAt(entry, commit);
  const isFirst = entry.hasNoChecks === true || isNext;
  delete entry.hasNoChecks;
  await entry.pulls.forge.setChecks(commit, checks, context.signal, { isFirst });
  await setQueuedChecks(context, entry.pulls.forge, packages, checks, entry.queued ?? []);
  entry.checks = text;
}

/** True if the last checks were set at this commit. */
export function hasChecksAt({ checks }: ShownPull, commit: string): boolean {
  return checks?.startsWith(checksTextOf(commit)) === true;
}

/** What a pull request has to show. */
export interface PullContent {
  readonly proposals: readonly string[];
  /** The section of Sluice. */
  readonly text: string;
  readonly review: ReviewPolicy;
  /** Takes the place of the title, as long as that is the one that Sluice has given. */
  readonly title?: string;
}

/**
 * Adds labels and reviewers, and writes the text. Users may remove labels and reviewers once the text states that they were added; a process
 * that ends before adds them again. What the host refuses of them does not keep the text from being written. Events are about `object`.
 */
export async function writePull(
  context: OpenContext,
  object: Stored<PackageRevision>,
  entry: ShownPull,
  pull: PullRequest,
  { proposals, text, review, title }: PullContent,
): Promise<void> {
  const { signal } = context;
  const { pulls, branch } = entry;
  let refusal: unknown;
  if (entry.isPrepared !== true)
    await preparePull(context, object, pull, pulls.forge, review).catch((error: unknown) => {
      refusal = error;
    });
  const isPrepared = entry.isPrepared === true || refusal === undefined;
  const now = (await pulls.ofBranch(branch, signal)) ?? pull;
  const written = `${proposals} ${text}`;
  const section = entry.text === written ? now.body : withSection(now.body, proposals, text);
  const body = isPrepared && entry.isPrepared !== true ? withPrepared(section) : section;
  // Hosts return line breaks as they were sent by browsers.
  const isNew = body !== now.body && body !== now.body.replaceAll('\r\n', '\n');
  const isRetitled = title !== undefined && now.title === entry.title && title !== now.title;
  if (isNew || isRetitled) await writeText(entry, isRetitled ? { body, title } : { body }, signal);
  if (isRetitled) entry.title = title;
  entry.text = written;
  if (refusal !== undefined) throw refusal;
  entry.isPrepared = true;
}

/** An own change is no reason to read reviews again; the next poll does it for one that came at the same time. */
async function writeText(
  entry: ShownPull,
  text: { readonly body: string; readonly title?: string },
  signal: AbortSignal,
): Promise<void> {
  const { pulls, branch, number, members } = entry;
  pulls.note(await pulls.forge.update(number, text, signal));
  const of = await pulls.ofBranch(branch, signal);
  if (of === undefined) return;
  if (entry.reviews !== undefined) entry.reviews = { ...entry.reviews, of };
  for (const { commands } of members.values()) if (commands.of !== undefined) commands.of = of;
}

/** What `ShownPull.checks` compares; without checks, what it begins with. */
function checksTextOf(commit: string, checks?: readonly Check[]): string {
  return `${commit} ${checks === undefined ? '' : digest(canonicalJson(checks))}`;
}
