import { z } from 'zod';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../../../resource/object/object.ts';
import { defineKind } from '../../../resource/schema/define-kind.ts';
import type { Kind } from '../../../resource/schema/kind.ts';

/** Characters of a text that is kept of an engine's object. */
const MAX_TEXT_CHARACTERS = 1024;
/** Of names, and of the other fields of metadata: those of a real server have up to 253. */
const MAX_NAME_CHARACTERS = 512;
const MAX_LIST_ITEMS = 20;
/** Levels of a reduced object. */
const MAX_DEPTH = 6;
const METADATA = ['name', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'];
const MAX_HISTORY = 5;
/** Unhealthy objects that are kept of an Application; a message names three. */
const MAX_RESOURCES = 5;

type Fields = Readonly<Record<string, unknown>>;

/**
 * A kind of an engine, of which only the fields are kept that are read: an Application can have hundreds of kilobytes, and a target
 * thousands of them. The server's rules apply to its objects, so nothing is validated here; `interpretApplication` and
 * `interpretKustomization` read them with care.
 */
function engineKind(
  identity: { group: string; version: string; kind: string; plural: string },
  reduce: (object: Fields) => Fields,
): Kind<KubernetesObject> {
  const description = `${identity.kind} of an engine; Sluice reads it only.`;
  const fields = { spec: z.unknown(), status: z.unknown() };
  const kind = defineKind({ ...identity, description, fields }) as unknown as Kind<KubernetesObject>;
  const parse = (value: unknown) => {
    const object = fieldsOf(value);
    const metadata = pick(object.metadata, ...METADATA, 'labels');
    // A name that is cut could be that of another object, and a version that is cut is of no use. Not InvalidInput, which keeps the object.
    for (const [field, text] of Object.entries(fieldsOf(metadata)))
      if (typeof text === 'string' && text.length > MAX_NAME_CHARACTERS)
        throw new SluiceError(
          'LimitExceeded',
          `metadata.${field} of an object has more than ${MAX_NAME_CHARACTERS} characters`,
        );
    const { apiVersion } = kind;
    const reduced = { apiVersion, kind: kind.kind, metadata, ...fieldsOf(bounded(reduce(object), MAX_DEPTH)) };
    return { object: reduced as unknown as KubernetesObject, unknownFields: [] };
  };
  return { ...kind, parse, complete: (input) => parse(input).object };
}

export const kustomizationKind = engineKind(
  { group: 'kustomize.toolkit.fluxcd.io', version: 'v1', kind: 'Kustomization', plural: 'kustomizations' },
  ({ spec, status }) => {
    const { path, suspend, wait, healthChecks, healthCheckExprs, sourceRef } = fieldsOf(spec);
    const reported = fieldsOf(status);
    const { observedGeneration, lastAppliedRevision, lastAppliedOriginRevision, lastAttemptedRevision } = reported;
    return {
      spec: defined({
        ...{ path: bounded(path), suspend, wait, sourceRef: bounded(sourceRef) },
        // Only whether there are any.
        ...{ healthChecks: listOf(healthChecks).slice(0, 1), healthCheckExprs: listOf(healthCheckExprs).slice(0, 1) },
      }),
      status: defined({
        ...{ observedGeneration, lastAppliedRevision: bounded(lastAppliedRevision) },
        lastAppliedOriginRevision: bounded(lastAppliedOriginRevision),
        lastAttemptedRevision: bounded(lastAttemptedRevision),
        conditions: conditionsOf(reported.conditions),
        history: Array.isArray(reported.history)
          ? reported.history.slice(0, MAX_HISTORY).map((entry) => pick(entry, 'lastReconciledStatus', 'metadata'))
          : undefined,
      }),
    };
  },
);

/** A source of Flux, which names the repository and the branch of Kustomizations. */
export const gitRepositoryKind = engineKind(
  { group: 'source.toolkit.fluxcd.io', version: 'v1', kind: 'GitRepository', plural: 'gitrepositories' },
  ({ spec }) => {
    const { url, ref, ignore, sparseCheckout } = fieldsOf(spec);
    // The part of a longer text that is cut off can contain any pattern.
    const isLong = typeof ignore === 'string' && ignore.length > MAX_TEXT_CHARACTERS;
    return {
      spec: defined({
        ...{ url: bounded(url), ref: bounded(ref), ignore: isLong ? '*' : bounded(ignore) },
        sparseCheckout: bounded(sparseCheckout),
      }),
    };
  },
);

export const applicationKind = engineKind(
  { group: 'argoproj.io', version: 'v1alpha1', kind: 'Application', plural: 'applications' },
  ({ spec, status }) => {
    const { source, sources } = fieldsOf(spec);
    const { sync, health, reconciledAt, sourceType, sourceTypes, operationState, conditions, history, resources } =
      fieldsOf(status);
    const operation = fieldsOf(operationState);
    return {
      spec: defined({
        source: sourceOf(source),
        sources: sources && listOf(sources).slice(0, MAX_LIST_ITEMS).map(sourceOf),
      }),
      status: defined({
        sync: pick(sync, 'status', 'revision', 'revisions'),
        health: pick(health, 'status', 'message', 'lastTransitionTime'),
        ...{ reconciledAt: bounded(reconciledAt), sourceType: bounded(sourceType), sourceTypes: bounded(sourceTypes) },
        operationState:
          operationState === undefined
            ? undefined
            : {
                ...fieldsOf(pick(operationState, 'phase', 'finishedAt', 'message')),
                syncResult: pick(operation.syncResult, 'revision', 'revisions'),
              },
        conditions: conditionsOf(conditions),
        history: listOf(history)
          .slice(-1)
          .map((entry) => pick(entry, 'revision', 'revisions')),
        resources: listOf(resources)
          .filter(
            (one) => ![undefined, 'Healthy'].includes(fieldsOf(fieldsOf(one).health).status as string | undefined),
          )
          .sort((a, b) => badness(a) - badness(b))
          .slice(0, MAX_RESOURCES)
          .map((one) => pick(one, 'kind', 'name', 'namespace', 'health')),
      }),
    };
  },
);

/** Generates Applications from the folders of a repository. Only the sources of its Git generators are kept. */
export const applicationSetKind = engineKind(
  { group: 'argoproj.io', version: 'v1alpha1', kind: 'ApplicationSet', plural: 'applicationsets' },
  ({ spec }) => {
    const generators = (holder: unknown) => listOf(fieldsOf(holder).generators).slice(0, MAX_LIST_ITEMS).map(fieldsOf);
    const outer = generators(spec);
    // A matrix or merge combines generators; deeper ones are not supported by Argo CD either.
    const all = [...outer, ...outer.flatMap(({ matrix, merge }) => [...generators(matrix), ...generators(merge)])];
    const sources = all
      .filter(({ git }) => git !== undefined)
      .map(({ git }) => {
        const { repoURL, revision } = fieldsOf(git);
        return defined({ repoURL: bounded(repoURL), targetRevision: bounded(revision) });
      });
    return { spec: { sources } };
  },
);

function badness(resource: unknown): number {
  const { status } = fieldsOf(fieldsOf(resource).health);
  return status === 'Degraded' ? 0 : status === 'Missing' ? 1 : 2;
}

function conditionsOf(conditions: unknown): unknown {
  if (!Array.isArray(conditions)) return undefined;
  const fields = ['type', 'status', 'reason', 'message', 'observedGeneration'];
  return conditions.slice(0, MAX_LIST_ITEMS).map((one) => pick(one, ...fields));
}

function sourceOf(source: unknown): unknown {
  return pick(source, 'repoURL', 'path', 'targetRevision', 'directory');
}

function pick(value: unknown, ...names: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null) return bounded(value);
  const fields = fieldsOf(value);
  return Object.fromEntries(names.flatMap((name) => (name in fields ? [[name, bounded(fields[name])]] : [])));
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A copy without what is long or deep. */
function bounded(value: unknown, depth = 3): unknown {
  if (typeof value === 'string')
    return value.length <= MAX_TEXT_CHARACTERS ? value : value.slice(0, MAX_TEXT_CHARACTERS);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return undefined;
  if (Array.isArray(value)) return value.slice(0, MAX_LIST_ITEMS).map((item) => bounded(item, depth - 1));
  const entries = Object.entries(value)
    .filter(([name]) => name.length <= MAX_NAME_CHARACTERS)
    .slice(0, MAX_LIST_ITEMS);
  return Object.fromEntries(entries.map(([name, inner]) => [name, bounded(inner, depth - 1)]));
}

function defined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
