import type { TargetObjects } from '../../../controllers/delivery/target/target-objects.ts';
import type { MayApprove } from '../../../controllers/pull-request/rights.ts';
import {
  createDeliverabilityCheck,
  DELIVERABLE_TYPE,
  describeRefusal,
} from '../../../controllers/revision/resolvers/deliverable/deliverability.ts';
import { changedProvider } from '../../../controllers/revision/resolvers/dependency/changed-provider.ts';
import { unhealthyProblem } from '../../../controllers/revision/resolvers/healthy/healthy-resolver.ts';
import type { BuildPackage } from '../../delivery/render/build-package.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import type { RevisionStoreOptions } from '../../package/store/revision-store-options.ts';
import type { ObjectReaders } from './object-readers.ts';
import { policyOf } from './session-policy.ts';

/** The parts of a session that approvals depend on. Those that are made after the store, or set later, are functions. */
export interface ApprovalHooksOptions {
  readonly buildPackage: BuildPackage;
  readonly targetObjects: TargetObjects;
  store(): RevisionStore;
  readers(): ObjectReaders;
  mayApprove(): MayApprove | undefined;
  whenOpened(): WhenOpened | undefined;
}

/** Resolves when the repositories of a namespace were opened for the first time, or could not be. */
export type WhenOpened = (namespace: string) => Promise<void>;

/** What objects that are no packages say about an approval. */
export function approvalHooks({
  buildPackage,
  targetObjects,
  store,
  readers,
  mayApprove,
  whenOpened,
}: ApprovalHooksOptions): Pick<RevisionStoreOptions, 'reserveApproval' | 'mayStillApprove' | 'approvalProblem'> {
  const deliverability = createDeliverabilityCheck({
    buildPackage,
    targets: (namespace) => readers().targets.listIn(namespace),
    repositoryOf: ({ namespace, key }) => readers().repositories.get({ namespace, name: key.repository }),
    packagesOf: (target, identity) => targetObjects.packagesOf(target, identity),
  });
  return {
    reserveApproval: async (revision) => {
      const { approvalRules } = policyOf(readers(), revision, revision.namespace);
      if (approvalRules.some(({ maxInFlight }) => maxInFlight !== undefined)) {
        // Packages of all repositories count: after a start, those of some are not known yet.
        await store().reachAll();
        await whenOpened()?.(revision.namespace);
      }
      return readers().inFlight?.reserve(revision) ?? (() => undefined);
    },
    mayStillApprove: async (user, revision, signal = new AbortController().signal) =>
      (await mayApprove()?.(user, revision, signal)) ?? true,
    approvalProblem: async (revision, files) => {
      await deliverability.prepare(revision, files);
      const message = describeRefusal(deliverability.check(revision, files));
      if (message !== undefined) return { type: DELIVERABLE_TYPE, message };
      const { requiredGates } = policyOf(readers(), revision, revision.namespace);
      const required = requiredGates.map(({ conditionType }) => conditionType);
      const targets = readers().targets.listIn(revision.namespace);
      const unhealthy = unhealthyProblem(revision, targets, readers().delivered, required);
      return unhealthy ?? changedProvider(revision, store());
    },
  };
}
