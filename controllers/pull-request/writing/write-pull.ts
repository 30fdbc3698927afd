import type { Check, PullRequest } from '../../../src/forge/forge.ts';
import { canonicalJson, digest } from '../../../src/foundation/text/canonical-json.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { PackageRevision } from '../../../src/resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../../src/resource/object/object.ts';
import { type CheckContext, setQueuedChecks } from '../checks/queued-checks.ts';
import { noteFailure } from '../host-failures.ts';
import { type OpenContext, preparePull, refusedText } from '../opening/open-pull.ts';
import type { ShownPull } from '../shown-proposals.ts';
import { proposalsIn, refusedIn, sectionOf, withPrepared, withSection } from '../text/section.ts';

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
  // A failure can follow the effect: then it is not known which checks the host has.
  delete entry.checks;
  await entry.pulls.forge.setChecks(commit, checks, context.signal, { isFirst });
  const { queued } = entry;
  await setQueuedChecks(context, entry.pulls.forge, packages, checks, queued ?? []);
  // Commits that wait in the merge queue since then have none yet.
  if (entry.queued === queued) entry.checks = text;
}

/** True if the last checks were set at this commit. */
export function hasChecksAt({ checks }: ShownPull, commit: string): boolean {
  return checks?.startsWith(checksTextOf(commit)) === true;
}

interface WritingContext extends OpenContext {
  readonly store: Pick<RevisionStore, 'find' | 'repositoryOf'>;
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
 * Adds labels and reviewers, and writes the text. Users may remove labels and reviewers once the text states that they were added; before that
 * a new process adds them again, and once the policy names others in the place of reviewers that the host refused. Reviewers that the policy
 * names since are requested too, while the same process runs. What users change in the section of Sluice is written again, once for each change. What the host refuses does not keep the text
 * from being written. Events are about `object`.
 */
export async function writePull(
  context: WritingContext,
  object: Stored<PackageRevision>,
  entry: ShownPull,
  pull: PullRequest,
  { proposals, text, review, title }: PullContent,
): Promise<void> {
  const { signal } = context;
  const { pulls, branch } = entry;
  let refusal: unknown;
  const missing = missingOf(entry, pull, review);
  if (missing !== undefined)
    await preparePull(context, object, pull, pulls.forge, missing).then(
      (refused) => {
        entry.requested = review.reviewers;
        entry.refused = new Map([...(entry.refused ?? []), ...refused]);
      },
      (error: unknown) => {
        refusal = error;
      },
    );
  const refused = refusedOf(entry, review);
  noteRefused(context, entry, [...refused.values()]);
  const hasRest = entry.isPrepared === true || refusal === undefined;
  // Those that come in the place of refused ones may be found by another process, or together with another host.
  const isPrepared = hasRest && refused.size === 0;
  const now = (await pulls.ofBranch(branch, signal)) ?? pull;
  const written = `${proposals} ${text}`;
  // What users change in it would pass for the state of the proposal.
  const isKept = entry.text === written && ownPartOf(now.body) === entry.ownPart;
  const section = isKept ? now.body : withSection(now.body, proposals, text);
  const body = withPrepared(section, isPrepared, hasRest ? [...refused.keys()] : []);
  // Hosts return line breaks as they were sent by browsers.
  const isNew = body !== now.body && body !== now.body.replaceAll('\r\n', '\n');
  const isOwnTitle = now.title === entry.title || now.title === entry.triedTitle;
  const isRetitled = title !== undefined && isOwnTitle && title !== now.title;
  // A failure can follow the effect.
  if (isRetitled) entry.triedTitle = title;
  if (isNew || isRetitled) await writeText(entry, isRetitled ? { body, title } : { body }, signal);
  else entry.ownPart = ownPartOf(now.body);
  if (isRetitled) entry.title = title;
  entry.text = written;
  if (refusal !== undefined) throw refusal;
  entry.isPrepared = true;
}

/** What a pull request has not got of the labels and reviewers of its policy; undefined if it has all. */
function missingOf(
  entry: ShownPull,
  pull: PullRequest,
  { labels, reviewers }: ReviewPolicy,
): Pick<ReviewPolicy, 'labels' | 'reviewers'> | undefined {
  const named = [...reviewers.users, ...reviewers.teams];
  const earlier = entry.requested === undefined ? refusedIn(pull.body) : [];
  if (entry.isPrepared !== true && earlier.length > 0 && earlier.every((name) => named.includes(name))) {
    // To request those again in each pull request after a restart would take what the host permits in an hour.
    entry.isPrepared = true;
    entry.refused = new Map(earlier.map((name) => [name, refusedText(pull, name, 'the host refused it before')]));
  }
  if (entry.isPrepared !== true) return { labels, reviewers };
  // It is not known for which ones an earlier process has prepared it.
  entry.requested ??= reviewers;
  const before = entry.requested;
  const users = reviewers.users.filter((one) => !before.users.includes(one));
  const teams = reviewers.teams.filter((one) => !before.teams.includes(one));
  return users.length + teams.length === 0 ? undefined : { labels: [], reviewers: { users, teams } };
}

/** The messages about reviewers that the host has refused, and that the policy still names. */
function refusedOf({ refused = new Map() }: ShownPull, { reviewers }: ReviewPolicy): ReadonlyMap<string, string> {
  const named = [...reviewers.users, ...reviewers.teams];
  return new Map([...refused].filter(([name]) => named.includes(name)));
}

function noteRefused({ store }: WritingContext, { members, refused }: ShownPull, messages: readonly string[]): void {
  if (refused === undefined) return;
  const text = messages.length === 0 ? undefined : messages.join('; ');
  for (const { key } of members.values()) noteFailure(store, key, 'ReviewerRefused', text);
}

/** An own change is no reason to read reviews again; the next poll does it for one that came at the same time. */
async function writeText(
  entry: ShownPull,
  text: { readonly body: string; readonly title?: string },
  signal: AbortSignal,
): Promise<void> {
  const { pulls, branch, number, members } = entry;
  const after = await pulls.forge.update(number, text, signal);
  pulls.note(after);
  entry.ownPart = ownPartOf(after.body);
  const of = await pulls.ofBranch(branch, signal);
  if (of === undefined) return;
  if (entry.reviews !== undefined) entry.reviews = { ...entry.reviews, of };
  for (const { commands } of members.values()) if (commands.of !== undefined) commands.of = of;
}

/** The section with its proposals, as the host has it. */
function ownPartOf(body: string): string {
  return `${proposalsIn(body)} ${sectionOf(body) ?? ''}`;
}

/** What `ShownPull.checks` compares; without checks, what it begins with. */
function checksTextOf(commit: string, checks?: readonly Check[]): string {
  return `${commit} ${checks === undefined ? '' : digest(canonicalJson(checks))}`;
}
