import { type PackageVariant, waitsIn } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { mergeReportsOf } from './merge-reports.ts';

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

/** What a variant keeps up to date, and what it waits for. */
export function describeVariant({ metadata, spec, status }: PackageVariant): ObjectExplanation {
  const { upstream, downstream } = spec;
  const version = [
    ...(upstream.revision === undefined || upstream.revision === 0 ? [] : [`revision ${upstream.revision}`]),
    ...(upstream.workspaceName ? [`workspace ${upstream.workspaceName}`] : []),
  ].join(' and ');
  const set = metadata.ownerReferences?.find(({ kind }) => kind === packageVariantSetKind.kind)?.name;
  const targets = (status?.downstreamTargets ?? []).flatMap(({ name }) => name ?? []);
  return {
    subject: `PackageVariant ${metadata.name}`,
    state: stateOf(metadata.generation, status),
    reasons: [
      `it keeps ${downstream.repo}/${downstream.package} up to date with ${version === '' ? 'the latest revision' : version} of ${upstream.repo}/${upstream.package}`,
      ...(set === undefined ? [] : [`it belongs to PackageVariantSet ${set}`]),
      ...messagesOf(metadata.generation, status),
      ...mergeReportsOf(status).map(({ message }) => message),
    ],
    next: [...targets, ...(set === undefined ? [] : [`packagevariantset/${set}`])],
  };
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
  if (ready === undefined || ready.observedGeneration !== generation)
    return ['no controller has carried it out yet: is "sluice up" running, and the controller not disabled?'];
  const { message = '', lastTransitionTime } = stalled?.status === 'True' ? stalled : ready;
  return [lastTransitionTime === undefined ? message : `${message} (since ${lastTransitionTime})`];
}
