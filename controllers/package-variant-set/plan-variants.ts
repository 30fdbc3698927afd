import { createHash } from 'node:crypto';
import { createPacer } from '../../src/foundation/concurrency/in-slices.ts';
import { isSluiceError, messageOf, SluiceError } from '../../src/foundation/sluice-error.ts';
import { cpuMilliseconds } from '../../src/foundation/time/cpu-time.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { type PackageVariantSet, SET_LABEL } from '../../src/resource/kinds/porch/package-variant-set.ts';
import type { InvalidObjectDetails } from '../../src/resource/object/invalid-object.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { type Place, renderVariant, type TemplateInputs } from './render-template.ts';

const MAX_NAME_CHARACTERS = 63;
const HASH_CHARACTERS = 8;
/** Problems that a message lists, and targets that it names for each. */
const MAX_PROBLEMS = 5;
const MAX_SUBJECTS = 5;

/**
 * Milliseconds of processor time for the expressions of a set, and in addition for each of its targets: some thirty times what usual ones
 * need. One expression has limits of its own, but a set has many, for many targets.
 */
const MAX_EVALUATION_MS = 1000;
const MAX_EVALUATION_MS_PER_TARGET = 1;

/** Why a target has no variant. */
export interface TargetProblem {
  /** The target, as in Place. */
  readonly field: string;
  readonly subject: string;
  /** Without the target, so that several targets can have the same problem. */
  readonly message: string;
}

export interface VariantPlan {
  readonly create: readonly PackageVariant[];
  readonly update: readonly PackageVariant[];
  /** Empty while there are problems: then it is not known which variants are wanted. */
  readonly remove: readonly Stored<PackageVariant>[];
  /** Targets without a variant. */
  readonly problems: readonly TargetProblem[];
  /** Targets whose downstream packages belong to variants of others. */
  readonly claims: readonly TargetProblem[];
}

/**
 * Compares the variants that a set wants with those that exist in its namespace. Variants are matched by their downstream package: a change of
 * the template updates them. Yields to other work. Throws LimitExceeded if the expressions cost too much.
 */
export async function planVariants(
  set: Stored<PackageVariantSet>,
  places: readonly Place[],
  inputs: TemplateInputs,
  present: readonly Stored<PackageVariant>[],
): Promise<VariantPlan> {
  const others = new Map<string, Stored<PackageVariant>>();
  const own = new Map<string, Stored<PackageVariant>>();
  for (const variant of present) (isOf(set, variant) ? own : others).set(downstreamOf(variant), variant);
  const names = new Set(present.map(({ metadata }) => metadata.name));
  const problems: TargetProblem[] = [];
  const claims: TargetProblem[] = [];
  const wanted = new Map<string, { readonly variant: PackageVariant; readonly place: Place }>();
  const pause = createPacer();
  const most = MAX_EVALUATION_MS + MAX_EVALUATION_MS_PER_TARGET * places.length;
  let spent = 0;
  for (const place of places) {
    const { field, subject } = place;
    const turn = pause();
    if (turn !== undefined) await turn;
    const start = cpuMilliseconds();
    try {
      const variant = variantOf(set, place, inputs);
      const id = downstreamOf(variant);
      const other = wanted.get(id);
      if (other !== undefined)
        throw new SluiceError(
          'InvalidInput',
          `downstream package ${id} is that of ${other.place.field} (${other.place.subject}) too`,
        );
      wanted.set(id, { variant, place });
    } catch (error) {
      problems.push({ field, subject, message: messageOf(error) });
    }
    spent += cpuMilliseconds() - start;
    if (spent > most)
      throw new SluiceError(
        'LimitExceeded',
        `the expressions of the templates cost more than ${most} ms for ${places.length} targets; nothing was changed: simplify them, or select fewer targets`,
      );
  }
  const create: PackageVariant[] = [];
  const update: PackageVariant[] = [];
  // In a fixed order, so that names are the same in every attempt.
  for (const [id, { variant, place }] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const before = own.get(id);
    const holder = others.get(id);
    if (before !== undefined) {
      const metadata = withLabel(set, before.metadata);
      if (metadata !== before.metadata || !sameValue(before.spec, variant.spec))
        update.push({ ...before, metadata, spec: variant.spec });
    } else if (holder !== undefined) {
      const owner = holder.metadata.ownerReferences?.find(({ controller }) => controller === true);
      const of = owner === undefined ? '' : ` of ${owner.kind} ${owner.name}`;
      const message = `downstream package ${id} belongs to PackageVariant ${holder.metadata.name}${of}`;
      claims.push({ field: place.field, subject: place.subject, message });
    } else {
      const name = freeName(set.metadata.name, variant.spec.downstream, names);
      names.add(name);
      create.push({ ...variant, metadata: { ...variant.metadata, name } });
    }
  }
  const remove = problems.length > 0 ? [] : [...own].flatMap(([id, variant]) => (wanted.has(id) ? [] : [variant]));
  return { create, update, remove, problems, claims };
}

/** Up to some problems in one text: each one once, with the targets that have it. */
export function listProblems(problems: readonly TargetProblem[]): string {
  const subjects = new Map<string, string[]>();
  for (const { field, subject, message } of problems) {
    const text = JSON.stringify([field, message]);
    const known = subjects.get(text);
    if (known === undefined) subjects.set(text, [subject]);
    else known.push(subject);
  }
  const texts = [...subjects].slice(0, MAX_PROBLEMS).map(([text, of]) => {
    const [field, message] = JSON.parse(text) as [string, string];
    const names = [...new Set(of)];
    const rest = names.length - MAX_SUBJECTS;
    return `${field} (${names.slice(0, MAX_SUBJECTS).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}): ${message}`;
  });
  const more = subjects.size - MAX_PROBLEMS;
  return `${texts.join('; ')}${more > 0 ? `; and ${more} more problems` : ''}`;
}

/** `<set>-<repository>-<package>`; with a hash if that is too long, no name, or taken. */
function freeName(
  set: string,
  { repo, package: path }: PackageVariant['spec']['downstream'],
  taken: ReadonlySet<string>,
): string {
  const plain = `${set}-${repo}-${path}`;
  if (plain.length <= MAX_NAME_CHARACTERS && /^[a-z0-9][a-z0-9.-]*[a-z0-9]$/.test(plain) && !taken.has(plain))
    return plain;
  const hash = createHash('sha256')
    .update(JSON.stringify([set, repo, path]))
    .digest('hex')
    .slice(0, HASH_CHARACTERS);
  const stub = plain
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, MAX_NAME_CHARACTERS - HASH_CHARACTERS - 1)
    .replace(/[.-]+$/, '');
  return `${stub}-${hash}`;
}

function variantOf(set: Stored<PackageVariantSet>, place: Place, inputs: TemplateInputs): PackageVariant {
  const { name, namespace, uid } = set.metadata;
  const { apiVersion, kind } = set;
  const spec = renderVariant(set.spec.upstream, place, inputs);
  const metadata = {
    ...{ name, namespace, labels: { [SET_LABEL]: uid } },
    ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
  };
  try {
    return packageVariantKind.parse({ metadata, spec }).object;
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    // Not the whole message: the variant has no name yet.
    const { causes } = error.details as InvalidObjectDetails;
    const texts = causes.map(({ field, message }) => `${field}: ${message}`);
    throw new SluiceError('InvalidInput', `the variant is invalid: ${texts.join(', ')}`, { cause: error });
  }
}

function isOf({ metadata: { uid } }: Stored<PackageVariantSet>, { metadata }: PackageVariant): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
}

/** With the label of the set that controls the variant, which users may have removed. Of several owners only that one writes it. */
function withLabel(
  { metadata: { uid } }: Stored<PackageVariantSet>,
  metadata: Stored<PackageVariant>['metadata'],
): Stored<PackageVariant>['metadata'] {
  const { labels, ownerReferences = [] } = metadata;
  const controls = ownerReferences.some((owner) => owner.uid === uid && owner.controller === true);
  return controls && labels?.[SET_LABEL] !== uid ? { ...metadata, labels: { ...labels, [SET_LABEL]: uid } } : metadata;
}

function downstreamOf({ spec: { downstream } }: PackageVariant): string {
  return `${downstream.repo}/${downstream.package}`;
}
