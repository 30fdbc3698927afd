import { annotationExplainer } from '../../../controllers/approval/explain-annotations.ts';
import { approvalExplainer } from '../../../controllers/approval/explain-approval.ts';
import { freezeExplainer } from '../../../controllers/approval/explain-freeze.ts';
import { type DeliveryExplainerOptions, deliveryExplainer } from '../../../controllers/delivery/explain-delivery.ts';
import { lostTag, lostTagExplainer } from '../../../controllers/delivery/lost-tag.ts';
import { packageVariantExplainer } from '../../../controllers/package-variant/explain-package-variant.ts';
import { proposalExplainer } from '../../../controllers/proposal/explain-proposal.ts';
import { pullRequestExplainer } from '../../../controllers/pull-request/explain-pull-request.ts';
import type { ShownProposals } from '../../../controllers/pull-request/shown-proposals.ts';
import { gateExplainer } from '../../../controllers/revision/explain-gates.ts';
import { obstacleExplainer } from '../../../controllers/revision/explain-obstacles.ts';
import { resolverExplainer } from '../../../controllers/revision/explain-resolvers.ts';
import { waveExplainer } from '../../../controllers/wave-plan/explain-wave.ts';
import { holdingPlan } from '../../../controllers/wave-plan/holding-plan.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { permittedSetting } from '../../git/network/remote-url.ts';
import { explainRevision } from '../../package/api/explain/explain-revision.ts';
import { kernelExplainer, stateExplainer } from '../../package/api/explain/explain-state.ts';
import type { Explainer, Surroundings } from '../../package/api/explain/explainer.ts';
import type { Explanation } from '../../package/model/revision/explanation.ts';
import type { ObjectKey } from '../../resource/object/object.ts';
import { BUILT_IN_RESOLVERS } from '../resolvers/built-in-resolvers.ts';

/** Explains revisions through the explainers of all parts, in the order in which their findings are read. */
export class RevisionExplanations {
  readonly #options: DeliveryExplainerOptions;
  readonly #explainers: readonly Explainer[];

  constructor(options: DeliveryExplainerOptions, shown: ShownProposals) {
    this.#options = options;
    this.#explainers = [
      freezeExplainer,
      lostTagExplainer(options),
      stateExplainer(options.store, (url) => permittedSetting(url, options.network.hosts)),
      packageVariantExplainer(options),
      annotationExplainer,
      kernelExplainer,
      deliveryExplainer(options),
      obstacleExplainer,
      gateExplainer,
      proposalExplainer,
      waveExplainer(options),
      approvalExplainer({
        store: options.store,
        shown,
        isHeld: async (revision) => (await holdingPlan(revision, options)) !== undefined,
      }),
      pullRequestExplainer(options.store, shown),
      resolverExplainer(BUILT_IN_RESOLVERS),
    ];
  }

  /** NotFound if there is no such revision, with the findings of targets if its tag is missing. */
  async explain({ namespace = '', name }: ObjectKey, surroundings: Surroundings): Promise<Explanation> {
    const { store } = this.#options;
    const revision = store.find(`${namespace}/${name}`);
    if (revision !== undefined) return explainRevision(store, revision, this.#explainers, surroundings);
    const opening = store.openingError(`${namespace}/${name}`);
    if (opening !== undefined) throw opening;
    const lost = await lostTag({ namespace, name }, this.#options);
    throw new SluiceError('NotFound', `package revision "${name}" not found${lost === undefined ? '' : `: ${lost}`}`);
  }
}
