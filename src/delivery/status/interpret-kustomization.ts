import { z } from 'zod';
import type { Oid } from '../../git/git-repository.ts';
import { type DeploymentState, type EngineReport, problemReport, type SyncAttempt, state } from './engine-report.ts';
import { commitInFluxRevision, engineText, sourcePath } from './engine-values.ts';

/** The status of an attempt in `history`. */
const SUCCEEDED = 'ReconciliationSucceeded';

const text = z.string().optional().catch(undefined);

const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: text,
  message: text,
  observedGeneration: z.number().optional().catch(undefined),
});

/** Fields of another form than expected count as absent: one wrong field must not hide the others. */
const kustomization = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string().default('default'),
    generation: z.number().optional().catch(undefined),
  }),
  spec: z
    .object({
      path: text,
      suspend: z.boolean().optional().catch(undefined),
      wait: z.boolean().optional().catch(undefined),
      healthChecks: z.array(z.unknown()).optional().catch(undefined),
      healthCheckExprs: z.array(z.unknown()).optional().catch(undefined),
    })
    .catch({}),
  status: z
    .object({
      observedGeneration: z.number().optional().catch(undefined),
      lastAppliedRevision: text,
      lastAppliedOriginRevision: text,
      lastAttemptedRevision: text,
      history: z
        .array(z.object({ lastReconciledStatus: text, metadata: z.object({ revision: text }).catch({}) }))
        .optional()
        .catch(undefined),
      conditions: z
        .array(z.unknown())
        .optional()
        .catch(undefined)
        .transform((list) => (list ?? []).flatMap((one) => condition.safeParse(one).data ?? [])),
    })
    .optional()
    .catch(undefined),
});

type Kustomization = z.output<typeof kustomization>;
type FluxCondition = z.output<typeof condition>;

/**
 * Interprets a Kustomization of Flux (`kustomize.toolkit.fluxcd.io/v1`), by the rules of its controller:
 *
 * - `lastAppliedRevision` is set after a successful application, which with `wait` or health checks includes the health;
 *   `lastAttemptedRevision` at the begin of an attempt. So an attempted revision that is not applied with `Ready` False failed, except
 *   with the reason HealthCheckFailed: then it was applied, and is not healthy. `history` has the revisions that were applied after
 *   `lastAppliedRevision` without success: the cluster has their content, whatever was attempted later.
 * - `Ready` stays False while a failed object is tried again, with another revision too: a failure counts for the attempted revision only
 *   once `history` names that revision.
 * - `observedGeneration` must equal `metadata.generation`, or the status concerns an earlier spec.
 * - A suspended object stays Ready=True on an old revision: Blocked.
 * - Without `wait` and health checks Flux reports no health.
 *
 * Undefined for a value that is no such object.
 */
export function interpretKustomization(value: unknown): EngineReport | undefined {
  const { data } = kustomization.safeParse(value);
  if (data === undefined) return undefined;
  const { metadata, spec, status } = data;
  const object = `Kustomization ${engineText(`${metadata.namespace}/${metadata.name}`)}`;
  const path = sourcePath(spec.path);
  if (path === undefined) return problemReport(object, '', state('Unknown', 'NotReported', 'its spec.path is invalid'));
  if (spec.suspend === true)
    return problemReport(
      object,
      path,
      state('Unknown', 'Blocked', 'it is suspended (spec.suspend): Flux applies nothing'),
    );
  if (status === undefined) return problemReport(object, path, notYet('Flux has not reported on it yet'));
  const ready = status.conditions.find(({ type }) => type === 'Ready');
  const { generation } = metadata;
  const seen = [status.observedGeneration, ready?.observedGeneration].filter((one) => one !== undefined);
  if (generation !== undefined && (status.observedGeneration === undefined || seen.some((one) => one !== generation)))
    return problemReport(object, path, state('Unknown', 'Stale', 'Flux has not processed its present spec yet'));
  if (ready === undefined) return problemReport(object, path, notYet('Flux has not reported the condition Ready yet'));
  return report(object, path, data, ready);
}

function report(object: string, path: string, { spec, status }: Kustomization, ready: FluxCondition): EngineReport {
  const conditions = status?.conditions ?? [];
  const healthCondition = conditions.find(({ type }) => type === 'Healthy');
  const stalled = conditions.find(({ type, status: value }) => type === 'Stalled' && value === 'True');
  const applied = commitInFluxRevision(status?.lastAppliedOriginRevision ?? status?.lastAppliedRevision);
  // An artifact of another kind than Git has no attempted commit, only the origin of the applied one.
  const attempted =
    commitInFluxRevision(status?.lastAttemptedRevision) ?? (ready.status === 'True' ? applied : undefined);
  const message = engineText(ready.message ?? ready.reason ?? '');
  const checksHealth =
    spec.wait === true || (spec.healthChecks?.length ?? 0) > 0 || (spec.healthCheckExprs?.length ?? 0) > 0;
  const attempt = (outcome: SyncAttempt['outcome'], why = message): SyncAttempt | undefined =>
    attempted === undefined ? undefined : { commit: attempted, outcome, message: why };
  const since = appliedSince(status);
  const place = { object, path, subfolders: 'Found' as const };
  const common = { ...place, ...(since.length === 0 ? {} : { since }) };
  if (stalled !== undefined) {
    const why = engineText(stalled.message ?? stalled.reason ?? '');
    const failed = attempt('Failed', why);
    const healthy = notApplied(why);
    if (failed === undefined) return problemReport(object, path, state('False', 'Failed', why), healthy);
    return { ...common, applied: unless(applied, attempted), attempt: failed, healthy, isWorking: false };
  }
  if (ready.status === 'True') {
    if (applied === undefined || attempted !== applied)
      return { ...common, applied, attempt: attempt('Syncing'), healthy: progressing(message), isWorking: true };
    const healthy = checksHealth ? healthOf(healthCondition) : notChecked();
    // The last attempt is the success, whatever came before it.
    return { ...place, applied, attempt: attempt('Applied'), healthy, isWorking: false };
  }
  const isRetrying = conditions.some(({ type, status: value }) => type === 'Reconciling' && value === 'True');
  const last = status?.history?.find((one) => one.metadata.revision === status.lastAttemptedRevision);
  const isConcluded = !isRetrying || status?.history === undefined || last !== undefined;
  if (ready.status === 'False' && isConcluded) {
    if (ready.reason === 'HealthCheckFailed') {
      const healthy = state('False', 'Degraded', message);
      return { ...common, applied, attempt: attempt('Applied'), healthy, isWorking: false };
    }
    const isWaiting = ready.reason === 'DependencyNotReady';
    const result = attempt(isWaiting ? 'Syncing' : 'Failed');
    const healthy = notApplied(message);
    if (result === undefined)
      return problemReport(
        object,
        path,
        isWaiting ? state('Unknown', 'Syncing', message) : state('False', 'Failed', message),
        healthy,
      );
    return {
      ...common,
      applied: isWaiting ? applied : unless(applied, attempted),
      attempt: result,
      healthy,
      isWorking: isWaiting,
    };
  }
  // The health of an attempt is checked after everything was applied; the message names the revision.
  const isChecking =
    healthCondition?.status === 'Unknown' &&
    status?.lastAttemptedRevision !== undefined &&
    (healthCondition.message ?? '').startsWith(`Running health checks for revision ${status.lastAttemptedRevision} `);
  const healthy = progressing(message);
  return { ...common, applied, attempt: attempt(isChecking ? 'Applied' : 'Syncing'), healthy, isWorking: true };
}

/** The commits of `history`, the newest first, that were applied after the last success; all of them if that one is no longer in it. */
function appliedSince(status: Kustomization['status']): Oid[] {
  const { history = [], lastAppliedRevision } = status ?? {};
  const success = history.findIndex(
    (one) => one.lastReconciledStatus === SUCCEEDED && one.metadata.revision === lastAppliedRevision,
  );
  const later = (success < 0 ? history : history.slice(0, success)).map((one) => one.metadata.revision);
  const commits = later.flatMap((one) => (one === lastAppliedRevision ? [] : (commitInFluxRevision(one) ?? [])));
  return [...new Set(commits)];
}

/** An attempt that failed on the commit that was applied before contradicts it: the cluster may have changed. */
function unless(applied: string | undefined, attempted: string | undefined): string | undefined {
  return applied === attempted ? undefined : applied;
}

function healthOf(condition: FluxCondition | undefined): DeploymentState {
  // Before version 1.4 of the controller there was no such condition; Ready includes the checks.
  if (condition === undefined || condition.status === 'True')
    return state('True', 'Healthy', engineText(condition?.message ?? 'its health checks passed'));
  const message = engineText(condition.message ?? condition.reason ?? '');
  return condition.status === 'False' ? state('False', 'Degraded', message) : progressing(message);
}

function notChecked(): DeploymentState {
  return state('Unknown', 'NotReported', 'Flux does not check the health of it; set spec.wait: true');
}

function notYet(message: string): DeploymentState {
  return state('Unknown', 'NotReported', message);
}

function notApplied(message: string): DeploymentState {
  return state('Unknown', 'Stale', `no health since the last attempt did not succeed: ${message}`);
}

function progressing(message: string): DeploymentState {
  return state('Unknown', 'Progressing', message);
}
