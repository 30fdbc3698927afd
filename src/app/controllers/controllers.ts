import { analysisController } from '../../../controllers/analysis/analysis-controller.ts';
import { fetchJson } from '../../../controllers/analysis/fetch-json.ts';
import { approvalController } from '../../../controllers/approval/approval-controller.ts';
import { deliveryController } from '../../../controllers/delivery/delivery-controller.ts';
import { dependencyRefreshController } from '../../../controllers/dependency-refresh/dependency-refresh-controller.ts';
import { deploymentStatusController } from '../../../controllers/deployment-status/deployment-controller.ts';
import { doraController } from '../../../controllers/dora/dora-controller.ts';
import { DraftRates } from '../../../controllers/draft-rates.ts';
import { notificationController } from '../../../controllers/notification/notification-controller.ts';
import { postToHost } from '../../../controllers/notification/post-to-host.ts';
import { packagePolicyController } from '../../../controllers/package-policy/package-policy-controller.ts';
import { packageVariantController } from '../../../controllers/package-variant/package-variant-controller.ts';
import type { SelectableKinds } from '../../../controllers/package-variant/selectable-kind.ts';
import { packageVariantSetController } from '../../../controllers/package-variant-set/package-variant-set-controller.ts';
import type { PolicyScope } from '../../../controllers/proposal/pending-revisions.ts';
import { proposalController } from '../../../controllers/proposal/proposal-controller.ts';
import { pullRequestController } from '../../../controllers/pull-request/pull-request-controller.ts';
import type { MayApprove, MayCreate } from '../../../controllers/pull-request/rights.ts';
import {
  type RepositoryControllerOptions,
  repositoryController,
} from '../../../controllers/repository/repository-controller.ts';
import type { SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import { applicableResolvers } from '../../../controllers/revision/arrange-resolvers.ts';
import { deliverableResolver } from '../../../controllers/revision/resolvers/deliverable/deliverable-resolver.ts';
import { dependencyResolver } from '../../../controllers/revision/resolvers/dependency/dependency-resolver.ts';
import { healthyResolver } from '../../../controllers/revision/resolvers/healthy/healthy-resolver.ts';
import { ipamResolver } from '../../../controllers/revision/resolvers/ipam/ipam-resolver.ts';
import { unreadRepositories } from '../../../controllers/revision/resolvers/ipam/unread-repositories.ts';
import { revisionController } from '../../../controllers/revision/revision-controller.ts';
import { subjectOf } from '../../../controllers/revision/working-package.ts';
import { rollbackController } from '../../../controllers/rollback/rollback-controller.ts';
import { ChangedFolders } from '../../../controllers/sync-trigger/changed-folders.ts';
import { syncTriggerController } from '../../../controllers/sync-trigger/sync-trigger-controller.ts';
import { userPullRequestController } from '../../../controllers/user-pull-request/user-pull-request-controller.ts';
import { analysisRuns } from '../../../controllers/wave-plan/analysis-runs.ts';
import { httpProbe } from '../../../controllers/wave-plan/targets/probe-target.ts';
import { WAVE_PLAN_ACTOR, wavePlanController } from '../../../controllers/wave-plan/wave-plan-controller.ts';
import type { ControllerOptions } from '../../controller/controller.ts';
import type { Manager } from '../../controller/manager.ts';
import { SharedLists } from '../../forge/shared-lists.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { addressGroup } from '../../git/open/repository-address.ts';
import type { PackageRevision } from '../../package/model/revision/package-revision.ts';
import type { Resolver } from '../../package/plan/ports/resolver.ts';
import type { RevisionEvaluation } from '../../package/store/evaluate-revision.ts';
import { reviewsOf } from '../../package/store/policies/repository-reviews.ts';
import type { Client } from '../../resource/client/client.ts';
import { keyOf, type ObjectKey } from '../../resource/object/object.ts';
import { policyOf } from '../policies/session-policy.ts';
import { BY_ADDRESS, sharingRepositories } from '../policies/shared-repositories.ts';
import type { Session } from '../session/session.ts';
import { deploymentSources } from './deployment-sources.ts';
import { openForges } from './forges.ts';
import { addHousekeepers, HOUSEKEEPERS } from './housekeepers.ts';
import { reviewProblems } from './review-problems.ts';

/** They move packages. */
export const MOVERS = [
  'repository',
  'package-variant-set',
  'package-variant',
  'revision',
  'proposal',
  'approval',
  'wave-plan',
  'pull-request',
  'user-pull-request',
  'analysis',
  'dependency-refresh',
  'delivery',
  'deployment-status',
  'sync-trigger',
  'notification',
  'rollback',
  'dora',
  'package-policy',
] as const;
const CONTROLLERS: readonly string[] = [...MOVERS, ...HOUSEKEEPERS];

export interface ControllerChoice {
  /** Besides those that are built in. */
  readonly resolvers: readonly Resolver[];
  readonly disabled: readonly string[];
  /** Run the housekeepers too. */
  readonly housekeeping: boolean;
  /** Bytes; see the repository controller. */
  readonly diskBudget?: number | undefined;
}

export interface ControllerSettings extends ControllerChoice {
  /** Called for each revision that a resolver cannot interpret. */
  readonly onProblem: (revision: string, message: string) => void;
  /** Syncs that webhooks request. */
  readonly requests?: SyncRequests;
  /** Delivery targets that webhooks report on. */
  readonly targetRequests?: SyncRequests;
  /** See the repository controller. */
  readonly onWanted?: RepositoryControllerOptions['onWanted'];
  /** See the repository controller. */
  readonly hasPeer?: boolean;
  /** See the pull-request controller. */
  readonly mayApprove: MayApprove | undefined;
  readonly maySetConditions: MayApprove | undefined;
  /** See the user-pull-request controller. */
  readonly mayCreate: MayCreate | undefined;
  /** The cluster that Sluice runs in, whose engines it reads. */
  readonly cluster?: Client | undefined;
  /** The kinds whose objects are injected and selected. Default: those of the session. */
  readonly kinds?: SelectableKinds;
}

/** Throws InvalidInput for a name that no controller has which can run. */
export function checkDisabled(
  names: readonly string[],
  { housekeeping }: Pick<ControllerChoice, 'housekeeping'>,
): void {
  const known = chosenControllers({ disabled: [], housekeeping });
  for (const name of names) {
    if (known.includes(name)) continue;
    if (CONTROLLERS.includes(name))
      throw new SluiceError(
        'InvalidInput',
        `controller "${name}" does not run in a cluster, which does its work itself; there are ${known.join(', ')}`,
      );
    throw new SluiceError('InvalidInput', `there is no controller "${name}"; there are ${known.join(', ')}`);
  }
}

/** Names of the controllers that run. */
export function chosenControllers({ disabled, housekeeping }: Omit<ControllerChoice, 'resolvers'>): string[] {
  const names = housekeeping ? CONTROLLERS : MOVERS;
  return names.filter((name) => !disabled.includes(name));
}

/** Puts all controllers that are not switched off into a manager. */
export function addControllers(manager: Manager, session: Session, choice: ControllerSettings): void {
  const { client, store, clock, folder, readers, renderer, trust } = session;
  readers.share(manager);
  const dataFolder = folder.path;
  const git = { network: session.network };
  const ipam = ipamResolver({ store, client, clock, onProblem: choice.onProblem });
  const requiredGates = (revision: PackageRevision) =>
    policyOf(readers, revision, revision.namespace).requiredGates.map(({ conditionType }) => conditionType);
  const deliverable = deliverableResolver({
    store,
    targets: (namespace) => readers.targets.listIn(namespace),
    repositoryOf: ({ namespace, key }) => readers.repositories.get({ namespace, name: key.repository }),
    shipped: session.targetObjects,
    buildPackage: session.buildPackage,
    requiredGates,
  });
  const { delivered } = readers;
  const healthy = healthyResolver({ store, targets: () => readers.targets.list(), delivered, clock, requiredGates });
  const sharing = (key: ObjectKey) => {
    const repository = readers.repositories.get(key);
    return repository === undefined ? [] : sharingRepositories(readers.sharing, repository).map(keyOf);
  };
  const registered = (address: string) => readers.repositories.byIndex(BY_ADDRESS, addressGroup(address));
  const readsBindings = session.objects.database !== undefined;
  const providers = {
    ...{ store, clock, delivered, sharing },
    repositoryOf: (key: ObjectKey) => readers.repositories.get(key),
    targets: (namespace: string) => readers.targets.listIn(namespace),
  };
  const dependency = dependencyResolver({
    ...providers,
    unread: (signal) => unreadRepositories(client, store, signal),
  });
  const resolvers = [ipam.resolver, deliverable.resolver, dependency.resolver, healthy.resolver, ...choice.resolvers];
  const applicableResolversOf = ({ revision, content }: RevisionEvaluation) =>
    revision.kptfile === undefined ? [] : applicableResolvers(resolvers, subjectOf(revision, content), true);
  const scope: PolicyScope = {
    sharing,
    onPolicyChange: (listener) => readers.repositoryPolicies.onChange(listener),
    systemNamespace: readers.systemNamespace,
  };
  const rates = new DraftRates(clock);
  const sources = deploymentSources({ client, clock, network: session.network, cluster: choice.cluster });
  const post = postToHost(session.network);
  const changedFolders = new ChangedFolders();
  const forges = openForges({ client, network: session.network, clock });
  const lists = new SharedLists(clock);
  const { kinds = session.registry } = choice;
  const options: Readonly<Record<(typeof MOVERS)[number], () => ControllerOptions>> = {
    repository: () =>
      repositoryController({
        ...{ client, store, clock, dataFolder, renderer, trust, git },
        isRegistered: (address) => session.repositories.isRegistered(address),
        policyFor: (revision, namespace) => policyOf(readers, revision, namespace),
        refreshPolicies: (key) => readers.refresh(key),
        listOf: (key) => readers.lists.get(key),
        readPolicies: (object) => readers.repositoryPolicies.report(object),
        dependentsOf: (revision) => store.dependentsOf(revision),
        registered,
        ...(session.objects.database === undefined
          ? {
              find: (key) => readers.repositories.get(key),
              // Of many namespaces, whose users do not trust each other.
              limitsSlow: true,
            }
          : {}),
        ...(choice.diskBudget === undefined ? {} : { diskBudget: choice.diskBudget }),
        ...(choice.requests === undefined ? {} : { requests: choice.requests }),
        onWanted: choice.onWanted,
        ...(choice.hasPeer === undefined ? {} : { hasPeer: choice.hasPeer }),
      }),
    revision: () =>
      revisionController({
        ...{ client, store, clock, renderer },
        resolvers,
        scope,
        sources: [...ipam.sources, ...deliverable.sources, ...dependency.sources, ...healthy.sources],
      }),
    'package-variant-set': () => packageVariantSetController({ client, store, clock, kinds }),
    'package-variant': () => packageVariantController({ client, store, clock, kinds, sharing, rates }),
    proposal: () => proposalController({ client, store, clock, scope, applicableResolvers: applicableResolversOf }),
    approval: () =>
      approvalController({
        ...{ client, store, clock, scope, applicableResolvers: applicableResolversOf },
        holds: session.holds,
      }),
    'wave-plan': () =>
      wavePlanController({
        ...{ client, store, clock, scope, delivered, applicableResolvers: applicableResolversOf },
        analyses: analysisRuns(client.as({ name: WAVE_PLAN_ACTOR }, 'controller')),
        probe: httpProbe(session.network),
        systemNamespace: readers.systemNamespace,
      }),
    'pull-request': () =>
      pullRequestController({
        ...{ client, store, clock, scope, readsBindings, requests: choice.requests },
        ...{ mayApprove: choice.mayApprove, maySetConditions: choice.maySetConditions },
        renderer: session.renderer,
        openForge: forges.forReview,
        lists,
        holds: session.holds,
        shown: session.shownProposals,
      }),
    'user-pull-request': () =>
      userPullRequestController({
        ...{ client, store, clock, scope, readsBindings, registered, requests: choice.requests },
        ...{ mayCreate: choice.mayCreate, mayApprove: choice.mayApprove },
        openForge: forges.forReview,
        lists,
        renderer: session.renderer,
        restrictedRenderer: session.restrictedRenderer,
        reviewsOf: (repository) => reviewsOf(repository, readers.policies.listIn(repository.metadata.namespace ?? '')),
      }),
    'dependency-refresh': () =>
      dependencyRefreshController({
        ...providers,
        ...{ client, rates },
        unread: (signal) => unreadRepositories(client, store, signal),
      }),
    analysis: () => analysisController({ client, clock, fetch: fetchJson(session.network) }),
    delivery: () =>
      deliveryController({
        ...{ client, store, clock, dataFolder, git, delivered },
        ...{ targetObjects: session.targetObjects, buildPackage: session.buildPackage, openForge: forges.forTarget },
        ...{ systemNamespace: readers.systemNamespace, requests: choice.targetRequests },
        onCommit: (target, folders) => {
          if (target.spec.engine?.trigger?.type === 'Annotation') changedFolders.add(keyOf(target), folders);
        },
      }),
    'deployment-status': () =>
      deploymentStatusController({ client, store, clock, dataFolder, git, sources, delivered }),
    'sync-trigger': () =>
      syncTriggerController({ client, clock, post, changedFolders, openCluster: sources.openCluster }),
    notification: () => notificationController({ client, clock, post }),
    rollback: () => rollbackController({ client, store, clock, dataFolder, git, delivered }),
    'package-policy': () =>
      packagePolicyController({
        ...{ client, store, clock, variants: readers.variantReader },
        policies: (namespace) => readers.policies.listIn(namespace),
        repositories: (namespace) => readers.repositories.listIn(namespace),
        variantSets: (namespace) => readers.variantSets.listIn(namespace),
        readsBindings,
        mayApprove: choice.mayApprove,
        reviewProblems: (policy, signal) => reviewProblems(client, session.network.hosts, policy, signal),
      }),
    dora: () => doraController({ client, store, clock, dataFolder, git, delivered }),
  };
  for (const name of MOVERS) if (!choice.disabled.includes(name)) manager.addController(options[name]());
  if (choice.housekeeping) addHousekeepers(manager, session, choice.disabled);
}
