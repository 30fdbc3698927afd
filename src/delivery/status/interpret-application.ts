import { z } from 'zod';
import type { Oid } from '../../git/git-repository.ts';
import { type DeploymentState, type EngineReport, problemReport, type SyncAttempt, state } from './engine-report.ts';
import { commitIn, engineText, shortOf, sourcePath, timeIn } from './engine-values.ts';

/** Milliseconds that a health must last: right after a synchronisation Argo CD can report the health of the objects before it. */
const HEALTH_SETTLES_MS = 5_000;
/** The last operation failed; the operation itself names the commit that this concerns. */
const SYNC_ERROR = 'SyncError';
/** Objects that a message names. */
const MAX_NAMED = 3;

const text = z.string().optional().catch(undefined);
const list = <Item extends z.ZodType>(item: Item) =>
  z
    .array(z.unknown())
    .optional()
    .catch(undefined)
    .transform((values) => (values ?? []).flatMap((value) => item.safeParse(value).data ?? []) as z.output<Item>[]);

const revisionFields = { revision: text, revisions: list(z.string()) };
const flag = z.boolean().optional().catch(undefined);
const source = z.object({
  ...{ repoURL: text, path: text, targetRevision: text },
  directory: z.object({ recurse: flag, include: text, exclude: text }).optional().catch(undefined),
});
export type ApplicationSource = z.output<typeof source>;

/** Fields of another form than expected count as absent: one wrong field must not hide the others. */
const application = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string().default('default') }),
  spec: z.object({ source: source.optional().catch(undefined), sources: list(source) }).catch({ sources: [] }),
  status: z
    .object({
      sync: z
        .object({ status: text, ...revisionFields })
        .optional()
        .catch(undefined),
      health: z.object({ status: text, message: text, lastTransitionTime: text }).optional().catch(undefined),
      reconciledAt: text,
      sourceType: text,
      sourceTypes: list(z.string()),
      operationState: z
        .object({
          phase: text,
          finishedAt: text,
          message: text,
          syncResult: z.object(revisionFields).optional().catch(undefined),
        })
        .optional()
        .catch(undefined),
      conditions: list(z.object({ type: z.string(), message: text })),
      history: list(z.object(revisionFields)),
      resources: list(
        z.object({
          kind: z.string(),
          name: z.string(),
          namespace: text,
          health: z.object({ status: text, message: text }),
        }),
      ),
    })
    .optional()
    .catch(undefined),
});

type Application = z.output<typeof application>;
type ApplicationStatus = NonNullable<Application['status']>;
type Revisions = z.output<z.ZodObject<typeof revisionFields>>;

export interface ApplicationOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** When Sluice first saw the present health; used where the time of the transition is missing or in the future. */
  readonly healthSeenAt: number;
  /** Selects the source of the target among several. Default: the first one. */
  readonly isSource?: (source: ApplicationSource) => boolean;
}

/** The sources of an Application, the only one of most. */
export function sourcesOf(value: unknown): readonly ApplicationSource[] {
  const { data } = application.safeParse(value);
  if (data === undefined) return [];
  return data.spec.sources.length > 0 ? data.spec.sources : data.spec.source === undefined ? [] : [data.spec.source];
}

/**
 * Interprets an Application of Argo CD (`argoproj.io/v1alpha1`):
 *
 * - `operationState.syncResult.revision` is what was applied; `sync.revision` is what the cluster was compared with, and stands for the
 *   content of the cluster only while `sync.status` is Synced.
 * - Comparison and health count only if `reconciledAt` is not before `operationState.finishedAt`; both are times of Argo CD.
 * - A condition whose type ends in `Error` is a failure; a SyncError is that of the commit of the last operation.
 * - It deploys the files of its path, and no folder below: except with `directory.recurse`, or as a kustomization lists them.
 * - A health counts once it lasted five seconds. Suspended is progressing and no failure.
 *
 * Undefined for a value that is no such object.
 */
export function interpretApplication(value: unknown, options: ApplicationOptions): EngineReport | undefined {
  const { data } = application.safeParse(value);
  if (data === undefined) return undefined;
  const { metadata, status } = data;
  const object = `Application ${engineText(`${metadata.namespace}/${metadata.name}`)}`;
  const sources = sourcesOf(value);
  const found = options.isSource === undefined ? 0 : sources.findIndex(options.isSource);
  const isMulti = data.spec.sources.length > 0;
  const path = sourcePath(sources[Math.max(found, 0)]?.path);
  if (path === undefined)
    return problemReport(object, '', state('Unknown', 'NotReported', 'its source path is invalid'));
  if (found < 0)
    return problemReport(
      object,
      path,
      state('Unknown', 'NotReported', 'none of its sources is the branch of the target'),
    );
  if (status === undefined)
    return problemReport(object, path, state('Unknown', 'NotReported', 'Argo CD has not reported on it yet'));
  const errors = status.conditions.filter(({ type }) => type.endsWith('Error') && type !== SYNC_ERROR);
  if (errors.length > 0) {
    const message = engineText(errors.map(({ type, message: why }) => `${type}: ${why ?? ''}`).join('; '));
    return problemReport(object, path, state('False', 'Failed', message), state('False', 'Degraded', message));
  }
  const subfolders = subfoldersOf(sources[found], isMulti ? status.sourceTypes[found] : status.sourceType);
  const of = (revisions: Revisions | undefined) => revisionAt(revisions, isMulti ? found : undefined);
  return { ...report(object, path, status, of, options), ...(subfolders === undefined ? {} : { subfolders }) };
}

/** A filter can leave out any file; what Helm and plug-ins read is not known. */
function subfoldersOf(of: ApplicationSource | undefined, type: string | undefined): EngineReport['subfolders'] {
  if (type === 'Kustomize') return 'Listed';
  if (type !== undefined && type !== 'Directory') return 'None';
  const { recurse, include = '', exclude = '' } = of?.directory ?? {};
  return recurse === true && include === '' && exclude === '' ? undefined : 'None';
}

/** The commit of a source; a list has one for each of several sources. */
function revisionAt(revisions: Revisions | undefined, index: number | undefined): Oid | undefined {
  return commitIn(index === undefined ? revisions?.revision : revisions?.revisions[index]);
}

function report(
  object: string,
  path: string,
  status: ApplicationStatus,
  commitOf: (revisions: Revisions | undefined) => Oid | undefined,
  options: ApplicationOptions,
): EngineReport {
  const { sync, operationState: operation } = status;
  const phase = operation?.phase;
  const message = engineText(operation?.message ?? '');
  const isRunning = phase === 'Running' || phase === 'Terminating';
  const finishedAt = timeIn(operation?.finishedAt);
  const reconciledAt = timeIn(status.reconciledAt);
  const isCurrent =
    reconciledAt !== undefined &&
    !isRunning &&
    (operation === undefined || (finishedAt !== undefined && reconciledAt >= finishedAt));
  const operated = commitOf(operation?.syncResult);
  const compared = isCurrent ? commitOf(sync) : undefined;
  const lastApplied = phase === 'Succeeded' ? operated : commitOf(status.history.at(-1));
  const hasFailed = phase === 'Failed' || phase === 'Error';
  const common = { object, path };
  if (isRunning) {
    const attempt: SyncAttempt | undefined =
      operated === undefined ? undefined : { commit: operated, outcome: 'Syncing', message };
    const healthy = state('Unknown', 'Progressing', message || 'Argo CD synchronises it');
    const applied = lastApplied === operated ? undefined : lastApplied;
    return { ...common, applied, attempt, healthy, isWorking: true };
  }
  if (!isCurrent) {
    const healthy = state('Unknown', 'Stale', 'Argo CD has not assessed the health since its last synchronisation');
    const attempt: SyncAttempt | undefined =
      operated === undefined ? undefined : { commit: operated, outcome: hasFailed ? 'Failed' : 'Syncing', message };
    const isApplied = phase === 'Succeeded' && attempt !== undefined;
    const applied = hasFailed && lastApplied === operated ? undefined : lastApplied;
    return {
      ...common,
      applied,
      attempt: isApplied ? { ...attempt, outcome: 'Applied' } : attempt,
      healthy,
      isWorking: !hasFailed,
    };
  }
  const { healthy, retryAfterMs } = healthOf(status, options);
  const rest = { ...common, healthy, isWorking: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  if (sync?.status === 'Synced' && compared !== undefined)
    return { ...rest, applied: compared, attempt: { commit: compared, outcome: 'Applied', message } };
  if (hasFailed && operated !== undefined)
    return {
      ...rest,
      applied: lastApplied === operated ? undefined : lastApplied,
      attempt: { commit: operated, outcome: 'Failed', message: message || `phase ${phase}` },
    };
  if (sync?.status === 'OutOfSync' && compared !== undefined) {
    const why = `the cluster differs from commit ${shortOf(compared)}`;
    return { ...rest, applied: lastApplied, attempt: { commit: compared, outcome: 'OutOfSync', message: why } };
  }
  // Argo CD does not know whether the cluster is still as it applied it.
  const why = `its synchronisation status is ${engineText(sync?.status ?? 'missing', 40)}`;
  return problemReport(object, path, state('Unknown', 'NotReported', why));
}

function healthOf(
  { health, resources, conditions }: ApplicationStatus,
  { now, healthSeenAt }: ApplicationOptions,
): { readonly healthy: DeploymentState; readonly retryAfterMs?: number } {
  const syncError = conditions.find(({ type }) => type === SYNC_ERROR);
  if (syncError !== undefined)
    return { healthy: state('False', 'Degraded', engineText(syncError.message ?? SYNC_ERROR)) };
  const message = engineText([health?.message ?? '', ...unhealthy(resources)].filter((one) => one !== '').join('; '));
  switch (health?.status) {
    case 'Healthy': {
      const changedAt = timeIn(health.lastTransitionTime);
      const since = changedAt === undefined || changedAt > now ? Math.min(healthSeenAt, now) : changedAt;
      const left = HEALTH_SETTLES_MS - (now - since);
      if (left <= 0) return { healthy: state('True', 'Healthy', message) };
      const healthy = state('Unknown', 'Progressing', 'it became healthy less than 5 s ago');
      return { healthy, retryAfterMs: left };
    }
    case 'Progressing':
    case 'Suspended':
      return { healthy: state('Unknown', 'Progressing', message || `Argo CD reports ${health.status}`) };
    case 'Degraded':
      return { healthy: state('False', 'Degraded', message || 'Argo CD reports Degraded') };
    case 'Missing':
      return { healthy: state('False', 'Missing', message || 'Argo CD reports Missing') };
    default:
      return { healthy: state('Unknown', 'NotReported', 'Argo CD reports no health') };
  }
}

/** The objects that are not healthy, the failed ones first. */
function unhealthy(resources: ApplicationStatus['resources']): string[] {
  const rank = (status: string | undefined) => (status === 'Degraded' ? 0 : status === 'Missing' ? 1 : 2);
  return resources
    .filter(({ health }) => health.status !== undefined && health.status !== 'Healthy')
    .sort((a, b) => rank(a.health.status) - rank(b.health.status))
    .slice(0, MAX_NAMED)
    .map(({ kind, name, health }) => `${kind} ${name}: ${health.message ?? health.status}`);
}
