import { commandLine } from '../../src/foundation/text/command-line.ts';
import { type PackageVariant, waitsIn } from '../../src/resource/kinds/porch/package-variant.ts';
import type { PackageVariantSet } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { DEFAULT_NAMESPACE } from '../../src/resource/object/object.ts';
import { mergeReportsOf } from './merge-reports.ts';
import { setOf } from './plan-variant.ts';

const ADOPT = 'adoptExisting';

/** Why an object of a user has the state that it reports, as lines without styles. */
export interface ObjectExplanation {
  /** Kind and name, such as `PackageVariant web-edge`. */
  readonly subject: string;
  readonly state: string;
  readonly reasons: readonly string[];
  /** Arguments for `sluice why` that explain the rest. */
  readonly next: readonly string[];
  /** Commands that end the wait, without the place that they work on. */
  readonly commands?: readonly string[];
}

/** What a variant keeps up to date, and what it waits for. `set` is the one that made it, if that exists. */
export function describeVariant(variant: PackageVariant, set?: PackageVariantSet): ObjectExplanation {
  const { metadata, spec, status } = variant;
  const { upstream, downstream } = spec;
  const version = [
    ...(upstream.revision === undefined || upstream.revision === 0 ? [] : [`revision ${upstream.revision}`]),
    ...(upstream.workspaceName ? [`workspace ${upstream.workspaceName}`] : []),
  ].join(' and ');
  const setName = setOf(metadata);
  const commands = commandsFor(variant, set);
  const targets = (status?.downstreamTargets ?? []).flatMap(({ name }) => name ?? []);
  return {
    subject: `PackageVariant ${metadata.name}`,
    state: stateOf(metadata.generation, status),
    reasons: [
      `it keeps ${downstream.repo}/${downstream.package} up to date with ${version === '' ? 'the latest revision' : version} of ${upstream.repo}/${upstream.package}`,
      ...(setName === undefined ? [] : [`it belongs to PackageVariantSet ${setName}`]),
      ...messagesOf(metadata.generation, status),
      ...mergeReportsOf(status).map(({ message }) => message),
    ],
    // What ends the wait is not in the set, which refers to this variant.
    next: [...targets, ...(setName === undefined || commands.length > 0 ? [] : [`packagevariantset/${setName}`])],
    ...(commands.length === 0 ? {} : { commands }),
  };
}

/** The commands that a message of a variant names, and the one that lets it adopt its package. */
function commandsFor({ metadata, status }: PackageVariant, set: PackageVariantSet | undefined): string[] {
  const message = conditionMessage(metadata.generation, status);
  const named = [...message.matchAll(/"(sluice rpkg [^"]+)"/g)].map(([, command = '']) => command);
  if (!message.includes(ADOPT)) return named;
  const [setName, namespace] = [setOf(metadata), metadata.namespace ?? DEFAULT_NAMESPACE];
  const kubectl = (verb: string, ...words: string[]) => commandLine(['kubectl', '-n', namespace, verb, ...words]);
  const patch = (kind: string, name: string, type: string, body: unknown) =>
    kubectl('patch', kind, name, '--type', type, '-p', JSON.stringify(body));
  if (setName === undefined)
    return [...named, patch('packagevariant', metadata.name, 'merge', { spec: { adoptionPolicy: ADOPT } })];
  const [target, ...others] = set?.spec.targets ?? [];
  // Of several targets it is not known which one is that of the variant.
  if (target === undefined || others.length > 0) return [...named, kubectl('edit', 'packagevariantset', setName)];
  const path = '/spec/targets/0/template';
  const add =
    target.template === undefined
      ? { op: 'add', path, value: { adoptionPolicy: ADOPT } }
      : { op: 'add', path: `${path}/adoptionPolicy`, value: ADOPT };
  return [...named, patch('packagevariantset', setName, 'json', [add])];
}

/** The state of an object by its conditions `Stalled` and `Ready`. */
export function stateOf(generation: number | undefined, status: PackageVariant['status']): string {
  const [stalled, ready] = ['Stalled', 'Ready'].map((type) => findCondition(status?.conditions, type));
  if (ready === undefined || ready.observedGeneration !== generation) return 'not carried out yet';
  if (stalled?.status === 'True') return 'stalled';
  if (ready.status === 'True' && waitsIn(ready.message) !== undefined) return 'waits for a decision';
  return ready.status === 'True' ? 'up to date' : `not ready (${ready.reason})`;
}

/** What the conditions of an object report. */
export function messagesOf(generation: number | undefined, status: PackageVariant['status']): string[] {
  const [stalled, ready] = ['Stalled', 'Ready'].map((type) => findCondition(status?.conditions, type));
  const message = conditionMessage(generation, status);
  if (ready === undefined || ready.observedGeneration !== generation) return [message];
  const { lastTransitionTime } = stalled?.status === 'True' ? stalled : ready;
  return [lastTransitionTime === undefined ? message : `${message} (since ${lastTransitionTime})`];
}

/** The same without a time, for messages that get one of their own. */
export function conditionMessage(generation: number | undefined, status: PackageVariant['status']): string {
  const [stalled, ready] = ['Stalled', 'Ready'].map((type) => findCondition(status?.conditions, type));
  if (ready === undefined || ready.observedGeneration !== generation)
    return 'no controller has carried it out yet: is "sluice up" running, and the controller not disabled?';
  return (stalled?.status === 'True' ? stalled : ready).message ?? '';
}
