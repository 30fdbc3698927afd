import { specOrMetadataChanged } from '../../src/controller/predicates.ts';
import { type Source, toObject, toOwner, watchKind } from '../../src/controller/source.ts';
import { sleep } from '../../src/foundation/time/backoff.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import { SYSTEM_NAMESPACE } from '../../src/resource/kinds/core/namespace.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { freezeKind } from '../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { analysisRunKind } from '../../src/resource/kinds/sluice/wave/analysis-run.ts';
import { wavePlanKind } from '../../src/resource/kinds/sluice/wave/wave-plan.ts';
import { waveTargetKind } from '../../src/resource/kinds/sluice/wave/wave-target.ts';
import { keyOf, type ObjectKey } from '../../src/resource/object/object.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';
import { isOver } from '../../src/rollout/wave/plan-state.ts';
import type { PolicyScope } from '../proposal/pending-revisions.ts';

/** Milliseconds in which the events of a namespace are collected: a wave causes hundreds, and each reconciliation reads all targets. */
const QUIET_MS = 200;

/**
 * Wakes for a plan that changes, and for those of a namespace that are not over where a revision, a target, a policy or a freeze changed. Freezes of
 * the system namespace concern all plans.
 */
export function waveSources(
  clock: Clock,
  {
    quietMs = QUIET_MS,
    systemNamespace = SYSTEM_NAMESPACE,
    onPolicyChange = () => () => undefined,
  }: Pick<PolicyScope, 'onPolicyChange' | 'systemNamespace'> & { readonly quietMs?: number | undefined } = {},
): Source<ObjectKey>[] {
  return [
    watchKind(wavePlanKind, { predicate: specOrMetadataChanged, map: toObject }),
    // What external programs report; records are written by this controller.
    watchKind(waveTargetKind, {
      predicate: (event) => event.type === 'update' && !sameValue(event.object.status, event.old.status),
      map: toOwner(wavePlanKind, { controllerOnly: true }),
    }),
    watchKind(analysisRunKind, {
      predicate: (event) => event.type === 'update' && event.object.status?.phase !== event.old.status?.phase,
      map: toOwner(wavePlanKind, { controllerOnly: true }),
    }),
    {
      start({ informer, enqueue, track }) {
        const plans = informer(wavePlanKind);
        const inProgress = (namespace: string) =>
          plans.inNamespace(namespace).filter(({ status }) => !isOver(status?.phase ?? 'Pending'));
        const waiting = new Set<string>();
        const wake = (namespace: string | undefined) => {
          if (namespace === undefined || waiting.has(namespace)) return;
          if (inProgress(namespace).length === 0) return;
          waiting.add(namespace);
          track(async (signal) => {
            await sleep(clock, quietMs, signal);
            waiting.delete(namespace);
            if (!signal.aborted) for (const plan of inProgress(namespace)) enqueue(keyOf(plan));
          });
        };
        const ends = [
          informer(packageRevisionKind).addHandler((event) => {
            const { object } = event;
            const isOpen = object.spec.lifecycle === 'Proposed' || event.type !== 'update';
            const hasMoved = event.type === 'update' && event.old.spec.lifecycle !== object.spec.lifecycle;
            if (isOpen || hasMoved) wake(object.metadata.namespace);
          }),
          informer(deliveryTargetKind).addHandler((event) => {
            if (event.type !== 'update' || !sameValue(event.object.status, event.old.status))
              wake(event.object.metadata.namespace);
          }),
          informer(packagePolicyKind).addHandler((event) => {
            if (specOrMetadataChanged(event)) wake(event.object.metadata.namespace);
          }),
          onPolicyChange(({ namespace }) => wake(namespace)),
          informer(freezeKind).addHandler((event) => {
            if (!specOrMetadataChanged(event)) return;
            const { namespace } = event.object.metadata;
            if (namespace !== systemNamespace) wake(namespace);
            else for (const { metadata } of plans.list()) wake(metadata.namespace);
          }),
        ];
        return () => {
          for (const end of ends) end();
        };
      },
    },
  ];
}
