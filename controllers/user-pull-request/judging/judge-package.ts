import { type Condition, conditionsOf, gatesOf, type Kptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import { createPacer } from '../../../src/foundation/concurrency/in-slices.ts';
import { timestamp } from '../../../src/foundation/time/clock.ts';
import { type Finding, findingAt } from '../../../src/function/lint/finding.ts';
import { lintFiles } from '../../../src/function/lint/lint-files.ts';
import { lintInThread } from '../../../src/function/lint/lint-in-thread.ts';
import { isResourcePath } from '../../../src/function/resource/resource-path.ts';
import { inputsInMemory } from '../../../src/package/model/content/content.ts';
import { bindInputs, changedInputs, UNKNOWN_INPUTS } from '../../../src/package/model/content/inputs.ts';
import { evaluateGates, type Gate } from '../../../src/package/model/gates/gates.ts';
import { PUSH_ACTOR, sameCondition, syncVerdicts, withoutPushes } from '../../../src/package/model/gates/verdict.ts';
import { bindsContent, type EffectivePolicy } from '../../../src/package/model/policy/policy.ts';
import { REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import { emptyRecord, type RevisionRecord } from '../../../src/package/model/record/record.ts';
import type { RecordedContent } from '../../../src/package/plan/create/merged-package.ts';
import { permittedRendering, recordRendering, renderedKptfile } from '../../../src/package/plan/edit/render.ts';
import type { Renderer, Rendering } from '../../../src/package/plan/ports/renderer.ts';
import { renderedFindings, renderInMemory } from '../../pull-request/findings/render-findings.ts';
import { contentOfFiles, kptfileIn } from './content-in-memory.ts';
import { type BranchPackage, earlierConditions } from './earlier-conditions.ts';
import type { MergedPackage } from './merge-package.ts';

/** Bytes of changed YAML that is searched for mistakes on the event loop; what is larger takes a thread. */
const MAX_LINTED_FILE_BYTES = 32 * 1024;
const MAX_LINTED_BYTES = 1024 * 1024;

/** What a package of a pull request would be after its merge. */
export interface JudgedPackage {
  /** With files below the package folder. */
  readonly findings: readonly Finding[];
  /** Without that of the reviews in pull requests of proposals. */
  readonly gates: readonly Gate[];
  /** Undefined if it was not rendered. */
  readonly rendering: Rendering | undefined;
  readonly enforcement: EffectivePolicy['enforcement'];
  readonly review: EffectivePolicy['review'];
  /** The types of conditions that the branch has set for another content; see `earlierConditions`. */
  readonly earlier: ReadonlySet<string>;
  /** As they are rendered. */
  readonly files: ReadonlyMap<string, Buffer>;
}

export interface JudgeOptions {
  readonly namespace: string;
  /** Runs what the branch may run. */
  readonly renderer: Renderer | undefined;
  /** False for content of users who may not push to the repository: they issue no conditions. */
  readonly mayIssue: boolean;
  /** False for a merge that combines the package of the head with another one, for which a push has set no condition. */
  readonly isOfHead: boolean;
  /** The package in the head, which is what is judged if `isOfHead`; undefined where the head is not known. */
  readonly branch: BranchPackage | undefined;
  /** What the package has before these files; without it all conditions count as issued by the push. Called for a package with conditions. */
  readonly before?: () => Promise<RecordedPackage | undefined>;
  /** The policy of the package with this Kptfile. */
  policyFor(kptfile: Kptfile | undefined): EffectivePolicy;
  readonly now: number;
  readonly signal: AbortSignal;
}

/** A package in the commit that what is judged is merged onto. */
export interface RecordedPackage extends RecordedContent {
  /** Undefined if they are more than is read. */
  readonly files: ReadonlyMap<string, Buffer> | undefined;
}

/**
 * Lints, renders and evaluates a package in memory, as the kernel would evaluate the same content on a pushed draft: conditions that the branch
 * changes count as issued by its push, others for what they were issued for. Writes nothing.
 */
export async function judgePackage(merged: MergedPackage, options: JudgeOptions): Promise<JudgedPackage> {
  const { namespace, renderer, mayIssue, isOfHead, branch, now, signal } = options;
  const findings = [...merged.findings, ...(await lintChanged(merged, signal))];
  const before = merged.files.get('Kptfile');
  // Without it, the package would have no gates.
  const hasProblem = findings.some(
    ({ file, severity, code }) => severity === 'error' && (file === 'Kptfile' || UNREAD.has(code)),
  );
  const problem = hasProblem ? undefined : kptfileProblem(before);
  if (problem !== undefined) findings.push(problem);
  const policy = options.policyFor(kptfileIn(before));
  const isReadable = findings.every(({ code }) => !UNREADABLE.has(code)) && before !== undefined;
  const raw = isReadable ? await renderInMemory(merged.files, { renderer, namespace, policy, signal }) : undefined;
  const rendering = raw === undefined ? undefined : permittedRendering(raw, policy, []).rendering;
  if (rendering !== undefined) findings.push(...reportedFindings(rendering, merged.files, policy));
  const files = rendering === undefined ? merged.files : renderedFiles(merged.files, rendering);
  const kptfile = kptfileIn(files.get('Kptfile'));
  const differing = [...merged.changed].filter((path) => path !== 'Kptfile').sort();
  const content = contentOfFiles(files, differing);
  const at = timestamp(now);
  // What the Kptfile has before it is rendered came with the push.
  const pushed = kptfileIn(before);
  const conditions = pushed === undefined ? new Map<string, Condition>() : conditionsOf(pushed);
  const isIssued = mayIssue && conditions.size > 0;
  const recorded = isIssued ? await options.before?.() : undefined;
  const inputs = isIssued ? await inputsInMemory(files, content) : { ...UNKNOWN_INPUTS, content };
  const binds = (type: string) => bindsContent(policy, type);
  const onMain = kptfileIn(merged.onMain?.get('Kptfile'));
  const known = recorded?.conditions ?? (onMain && conditionsOf(onMain)) ?? new Map<string, Condition>();
  const added = new Map([...conditions].filter(([type, one]) => !isSame(known.get(type), one)));
  const earlier: ReadonlySet<string> =
    isIssued && isOfHead && branch !== undefined ? await earlierConditions(branch, added, binds) : new Set();
  const written = {
    ...{ conditions, known: recorded?.conditions, bindsContent: binds },
    unproven: (type: string) => !mayIssue || !isOfHead || earlier.has(type),
  };
  const push = { actor: { name: PUSH_ACTOR }, face: 'git' } as const;
  const start =
    recorded === undefined
      ? emptyRecord('')
      : await recordInMemory(recorded, recorded.files === merged.files ? differing : []);
  let record = syncVerdicts(isOfHead ? start : withoutPushes(start), written, inputs, push, at);
  if (rendering !== undefined) record = recordRendering(record, rendering, inputs, at, policy);
  const facts = {
    gates: kptfile === undefined ? [] : gatesOf(kptfile),
    conditions: kptfile === undefined ? new Map() : conditionsOf(kptfile),
    ...{ record, inputs },
  };
  // What the push issues is as new as this evaluation: a text with that time would change with each of them.
  const gates = evaluateGates(facts, policy, at)
    .filter(({ type }) => type !== REVIEWED_TYPE)
    .map((gate) => (gate.since === at ? { ...gate, since: undefined } : gate));
  return { findings, gates, rendering: raw, enforcement: policy.enforcement, review: policy.review, earlier, files };
}

/** Where a merge publishes, the merged package has to be rendered: no controller works on it any more. */
function reportedFindings(
  rendering: Rendering,
  files: ReadonlyMap<string, Buffer>,
  { review }: Pick<EffectivePolicy, 'review'>,
): Finding[] {
  const found = renderedFindings(rendering, files);
  if (review === undefined || review.publishOn === 'approval') return found;
  return found.map((one) => (one.code === 'NotRendered' ? { ...one, severity: 'error' } : one));
}

function isSame(known: Condition | undefined, condition: Condition): boolean {
  return known !== undefined && sameCondition(known, condition);
}

const UNREAD: ReadonlySet<string> = new Set(['TooLarge', 'Unreadable', 'Timeout']);
const UNREADABLE: ReadonlySet<string> = new Set([...UNREAD, 'InvalidYaml']);

/** Also where the branch does not change it. */
function kptfileProblem(data: Buffer | undefined): Finding | undefined {
  if (data === undefined) {
    const message = 'the package would have no Kptfile after the merge, since the main branch has removed it';
    return findingAt('Kptfile', { severity: 'error', message, code: 'MergeConflict' });
  }
  const read = readKptfile(data);
  if (read.ok) return undefined;
  const { line = 1, column = 1, message, code } = read.error;
  return { file: 'Kptfile', line, column, severity: 'error', message, code };
}

/** Only what the branch changes, a file at a time, so that other work has its turn. */
async function lintChanged({ files, changed }: MergedPackage, signal: AbortSignal): Promise<Finding[]> {
  const pause = createPacer();
  const findings: Finding[] = [];
  const large = new Map<string, Buffer>();
  let left = MAX_LINTED_BYTES;
  for (const path of changed) {
    const data = files.get(path);
    if (data === undefined || !isResourcePath(path)) continue;
    if (data.length > MAX_LINTED_FILE_BYTES || left < data.length) {
      large.set(path, data);
      continue;
    }
    left -= data.length;
    // A file that is no text is not read as YAML by anything.
    findings.push(...lintFiles(new Map([[path, data.toString('utf8')]])));
    await pause();
  }
  return [...findings, ...(await lintInThread(large, signal))];
}

function renderedFiles(before: ReadonlyMap<string, Buffer>, rendering: Rendering): ReadonlyMap<string, Buffer> {
  const files = new Map(before);
  for (const [path, data] of rendering.edits ?? []) {
    if (data === null) files.delete(path);
    else files.set(path, Buffer.from(data));
  }
  const kptfile = before.get('Kptfile')?.toString('utf8') ?? '';
  files.set('Kptfile', Buffer.from(renderedKptfile(kptfile, rendering)));
  return files;
}

/** The record with verdicts that are current bound to the same inputs as they are in memory; others stay stale. */
async function recordInMemory(
  { record, content, files }: RecordedPackage,
  differing: readonly string[],
): Promise<RevisionRecord> {
  if (files === undefined) return record;
  const inputs = await inputsInMemory(files, contentOfFiles(files, differing));
  const verdicts = record.verdicts.map((verdict) => {
    const isCurrent = changedInputs(verdict.inputs, content).length === 0;
    return isCurrent ? { ...verdict, inputs: bindInputs(Object.keys(verdict.inputs), inputs) } : verdict;
  });
  return { ...record, verdicts };
}
