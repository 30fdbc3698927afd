import { changeOf } from '../../../controllers/proposal/pending-revisions.ts';
import { changedHolds } from '../../../controllers/wave-plan/held-revisions.ts';
import type { Manager } from '../../controller/manager.ts';
import { specOrMetadataChanged } from '../../controller/predicates.ts';
import type { RuleChange } from '../../package/store/policies/concerned-revisions.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import type { Session } from '../session/session.ts';

/** Has the gates and rules of revisions evaluated again that changed policies, freezes or plans concern; returns what ends that. */
export function followRules(manager: Pick<Manager, 'informer'>, session: Session): (() => void)[] {
  // Existing objects were used from the start.
  let isNews = false;
  const handle = (change: RuleChange) => {
    if (isNews) session.repeatEvaluations(change);
  };
  const { systemNamespace, repositoryPolicies } = session.readers;
  const ends = [
    manager.informer(packagePolicyKind).addHandler((event) => {
      if (specOrMetadataChanged(event)) handle(changeOf(event));
    }),
    manager.informer(freezeKind).addHandler((event) => {
      const { namespace } = event.object.metadata;
      if (!specOrMetadataChanged(event)) return;
      handle({
        namespace: namespace === systemNamespace ? undefined : namespace,
        policies: undefined,
        onlyProposed: true,
      });
    }),
    manager.informer(wavePlanKind).addHandler((event) => {
      const policies = changedHolds(event);
      const { namespace = '' } = event.object.metadata;
      if (policies.length > 0) handle({ namespace, policies, onlyProposed: true });
    }),
    repositoryPolicies.onChange(handle),
  ];
  isNews = true;
  return ends;
}
