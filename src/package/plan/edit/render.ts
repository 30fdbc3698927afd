import {
  type Condition,
  editKptfile,
  type Kptfile,
  type KptfileEdit,
  readKptfile,
} from '../../../../kptfile-schema/index.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { EntryPoint, RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { isKptfilePath } from '../../merge/package-files.ts';
import { CONTENT_INPUT, type PackageInputs } from '../../model/content/inputs.ts';
import { needsRenewal } from '../../model/gates/gates.ts';
import {
  type IssuedCondition,
  type Issuer,
  issueVerdict,
  PUSH_ACTOR,
  plainCondition,
  RENDER_ACTOR,
  RENDERED_TYPE,
  withdrawVerdict,
} from '../../model/gates/verdict.ts';
import { DEFAULT_POLICY, type EffectivePolicy, refuseIssuer } from '../../model/policy/policy.ts';
import type { Contributor, RevisionRecord } from '../../model/record/record.ts';
import type { Renderer, Rendering } from '../ports/renderer.ts';

/** The condition that kpt writes into the Kptfile of a successfully rendered package. */
export const RENDERED: Condition = { type: RENDERED_TYPE, status: 'True', reason: 'RenderSuccess' };

const NO_SIGNAL = new AbortController().signal;

export type PackageTexts = ReadonlyMap<string, Uint8Array>;

/** False if no Kptfile of a package can name functions: a check of the bytes, for frequent callers. */
export function mayNameFunctions(files: PackageTexts): boolean {
  for (const [path, data] of files) if (isKptfilePath(path) && asBuffer(data).includes('pipeline')) return true;
  return false;
}

/**
 * Returns whether any Kptfile of a package, including nested packages, contains functions; undefined if one of them cannot
 * be read.
 */
export function namesFunctions(files: PackageTexts): boolean | undefined {
  let found = false;
  let own = false;
  for (const [path, data] of files) {
    if (!isKptfilePath(path)) continue;
    const read = readKptfile(data);
    if (!read.ok) return undefined;
    own ||= path === 'Kptfile';
    found ||= hasPipeline(read.kptfile);
  }
  return own ? found : undefined;
}

/**
 * Renders a package that is about to be written. A package without functions only gets the condition. Undefined if rendering is
 * impossible: a Kptfile cannot be read, or its functions cannot run now; the controller retries.
 */
export async function renderFiles(
  files: PackageTexts,
  { renderer, namespace }: { readonly renderer?: Renderer | undefined; readonly namespace: string },
  { validatorConditions, pinnedValidators }: Pick<EffectivePolicy, 'validatorConditions' | 'pinnedValidators'>,
  { signal = NO_SIGNAL, warn }: RequestContext,
): Promise<Rendering | undefined> {
  const pipeline = namesFunctions(files);
  if (pipeline === undefined) return undefined;
  if (!pipeline) return { kptfile: [], conditions: [RENDERED] };
  try {
    const rendering = await renderer?.render({ files, namespace, validatorConditions, pinnedValidators, signal });
    for (const note of rendering?.ignored ?? []) warn?.(note);
    return rendering;
  } catch (error) {
    if (!isSluiceError(error, 'Unavailable')) throw error;
    warn?.(`not rendered yet: ${error.message}`);
    return undefined;
  }
}

/**
 * Returns a rendering without the conditions that a policy does not permit the pipeline to issue or withdraw, and the reasons, one
 * sentence each. Functions are part of the package, so all its contributors count as issuers of their conditions, unless a policy
 * pins the function.
 */
export function permittedRendering(
  rendering: Rendering,
  policy: EffectivePolicy,
  contributors: readonly Contributor[],
): { readonly rendering: Rendering; readonly refused: readonly string[] } {
  const refused: string[] = [];
  const permitted = (type: string, pinned = false): boolean => {
    // Whether the package was rendered is a fact and not a verdict of the package's functions.
    if (type === RENDERED.type) return true;
    // A package cannot set what Sluice itself reports about it.
    const why = type.startsWith('sluice.dev/')
      ? `only Sluice itself sets ${type}; let the function set another type`
      : refusePipeline(policy, type, pinned ? [] : pipelineIssuers(contributors));
    if (why !== undefined) refused.push(`${RENDER_ACTOR}: ${why}`);
    return why === undefined;
  };
  const { conditions = [], withdraw = [] } = rendering;
  const kept = {
    ...rendering,
    conditions: conditions.filter(({ type, pinned }) => permitted(type, pinned)),
    withdraw: withdraw.filter((type) => permitted(type)),
  };
  return { rendering: kept, refused };
}

function refusePipeline(policy: EffectivePolicy, type: string, issuers: readonly Issuer[]): string | undefined {
  if (issuers.length === 0) return refuseIssuer(policy, type, { name: RENDER_ACTOR }, 'controller');
  for (const { name, groups = [], face } of issuers) {
    const why = refuseIssuer(policy, type, { name, groups }, face as EntryPoint);
    if (why !== undefined)
      return `${why}; ${name} may have changed the functions of the package, and no policy pins them (validatorConditions)`;
  }
  return undefined;
}

/** The issuers of the conditions that the functions of a package set. */
export function pipelineIssuers(contributors: readonly Contributor[]): Issuer[] {
  if (contributors.length === 0) return [{ name: PUSH_ACTOR, face: 'git' }];
  return contributors.map(({ name, groups, face, attributedBy }) =>
    // The report of a Git host makes no person the issuer of a condition.
    attributedBy === undefined
      ? { name, ...(groups === undefined ? {} : { groups }), face }
      : { name: PUSH_ACTOR, face: 'git' },
  );
}

/** The text of a Kptfile with all that rendering changes in it. Throws KptfileEditError if it cannot be edited. */
export function renderedKptfile(text: string, rendering: Rendering): string {
  const { kptfile, withdraw = [], conditions = [], gates = [] } = rendering;
  const read = readKptfile(text);
  const isThere = read.ok && isRendered(read.kptfile);
  const edits = conditions.flatMap((given): KptfileEdit[] => {
    const condition = plainCondition(given);
    const set = { op: 'setCondition', condition } as const;
    if (condition.type !== RENDERED.type) return [set];
    // As in kpt: once, and last, unless it exists; a copy stays as in its source.
    if (condition.status === 'True' && isThere) return [];
    return [{ op: 'removeCondition', type: condition.type }, set];
  });
  return editKptfile(text, [
    ...kptfile,
    ...withdraw.map((type) => ({ op: 'removeCondition', type }) as const),
    ...edits,
    ...gates.map((conditionType) => ({ op: 'addGate', conditionType }) as const),
  ]);
}

/** Records the result of rendering a package as it is now. */
export function recordRendering(
  record: RevisionRecord,
  { conditions = [], withdraw = [] }: Rendering,
  inputs: PackageInputs,
  at: string,
  policy: Pick<EffectivePolicy, 'validFor'> = DEFAULT_POLICY,
): RevisionRecord {
  let next = record;
  for (const type of withdraw) next = withdrawVerdict(next, type);
  for (const given of conditions) next = issueRendered(next, given, inputs, at, policy);
  return next;
}

/** Puts down one condition that rendering gave, on behalf of those who answer for it. */
export function issueRendered(
  record: RevisionRecord,
  given: IssuedCondition,
  inputs: PackageInputs,
  at: string,
  policy: Pick<EffectivePolicy, 'validFor'>,
): RevisionRecord {
  const isFact = given.type === RENDERED_TYPE || given.pinned === true;
  return issueVerdict(record, forContent(given), inputs, { actor: { name: RENDER_ACTOR }, face: 'controller' }, at, {
    renew: needsRenewal(policy, record, given.type, 'controller', at),
    ...(isFact ? {} : { issuers: pipelineIssuers(record.contributors ?? []) }),
    ...(given.pinned === true ? { pinned: true } : {}),
  });
}

/** A pipeline reads the whole package, whatever object a condition's type names. */
export function forContent(given: IssuedCondition): IssuedCondition {
  return { ...given, inputs: [CONTENT_INPUT] };
}

function hasPipeline({ pipeline }: Kptfile): boolean {
  return (pipeline?.mutators?.length ?? 0) + (pipeline?.validators?.length ?? 0) > 0;
}

/** True if the only condition about rendering is that of a successful render. Its position does not matter. */
function isRendered({ status }: Kptfile): boolean {
  const [found, ...others] = (status?.conditions ?? []).filter(({ type }) => type === RENDERED.type);
  return found !== undefined && others.length === 0 && sameValue(found, RENDERED);
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
