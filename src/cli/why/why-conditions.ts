import type { ObjectExplanation } from '../../../controllers/package-variant/describe-variant.ts';
import { deploymentMessage } from '../../delivery/status/revision-deployments.ts';
import { currentDeployment } from '../../delivery/status/target-deployment.ts';
import { counted } from '../../foundation/text/counted.ts';
import { spacedWords } from '../../foundation/text/spaced-words.ts';
import { sluiceCommand } from '../../package/api/explain/explainer.ts';
import { READ_ERROR_CONDITION, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { type Condition, findCondition } from '../../resource/object/condition.ts';
import type { Access } from '../access/access.ts';
import { withStatus } from '../access/repository-status.ts';
import { expectObject } from './expect-object.ts';

/** Explains a Repository by its conditions; without a server it is read now. */
export async function explainRepository(access: Access, name: string): Promise<ObjectExplanation> {
  const { object } = await withStatus(access, await expectObject(access, repositoryKind, name));
  const { spec, status } = object;
  const { repo, branch, directory = '/' } = spec.git ?? {};
  const ready = findCondition(status?.conditions, 'Ready');
  const count = status?.packageCount;
  // As the host answers for one that was renamed, deleted, or that the credentials may not read.
  const isMissing =
    ready?.status === 'False' && /has no such repository|there is no Git repository/.test(ready.message);
  return {
    subject: `Repository ${name}`,
    state: ready === undefined ? 'not read yet' : ready.status === 'True' ? 'ready' : 'cannot be used',
    reasons: [
      repo === undefined ? 'it is not in Git' : `it is branch ${branch} of ${repo}, folder ${directory}`,
      ...(count === undefined ? [] : [`${counted(count, 'package')} found`]),
      ...(ready === undefined ? [notReported('repository')] : []),
      ...conditionTexts((status?.conditions ?? []).filter(({ type }) => type !== READ_ERROR_CONDITION)),
    ],
    next: [],
    commands:
      ready?.status === 'True'
        ? [sluiceCommand('rpkg', 'get', '--repository', name)]
        : [sluiceCommand('repo', 'sync', name), ...(isMissing ? movedSteps(name) : [])],
  };
}

/** The address of a Repository cannot be changed. What is in Git, the records included, stays. */
function movedSteps(name: string): string[] {
  const register = sluiceCommand('repo', 'reg', 'NEW_ADDRESS', '--name', name);
  return [`if it has another address now: ${sluiceCommand('repo', 'unreg', name)}, and then: ${register}`];
}

/** Explains a DeliveryTarget by its conditions, and by what its engine reports. */
export async function explainTarget(access: Access, name: string): Promise<ObjectExplanation> {
  const { spec, status } = await expectObject(access, deliveryTargetKind, name);
  const { repo, branch, directory } = spec.git;
  const ready = findCondition(status?.conditions, 'Ready');
  const isRolledBack = (status?.rollbacks ?? []).length > 0;
  return {
    subject: `DeliveryTarget ${name}`,
    state:
      ready === undefined
        ? 'not delivered yet'
        : ready.status === 'True'
          ? 'delivered'
          : `not everything is delivered (${ready.reason})`,
    reasons: [
      `it delivers to branch ${branch} of ${repo}, folder ${directory}`,
      ...(status?.packageCount === undefined ? [] : [`${counted(status.packageCount, 'package')} in its last commit`]),
      ...(ready === undefined ? [notReported('delivery')] : []),
      ...conditionTexts(status?.conditions ?? []),
      engineText({ spec, status }),
    ],
    next: [],
    commands: [
      sluiceCommand('target', 'get', name, '--packages'),
      ...(isRolledBack ? [sluiceCommand('target', 'resume', name)] : []),
    ],
  };
}

function engineText({ spec, status }: Pick<DeliveryTarget, 'spec' | 'status'>): string {
  if (spec.engine === undefined) return 'without spec.engine nothing reports whether it is synced and healthy';
  const deployment = currentDeployment({ status });
  if (deployment === undefined) return 'its engine was not read yet: whether it is synced and healthy is not known';
  const { synced, healthy } = deployment;
  const message = deploymentMessage(deployment);
  return `its engine reports: synced ${synced.status} since ${synced.since}, healthy ${healthy.status} since ${healthy.since}${message === '' ? '' : `: ${message}`}`;
}

/** A sentence for each condition. */
function conditionTexts(conditions: readonly Condition[]): string[] {
  return conditions.map(
    ({ type, status, reason, message, lastTransitionTime }) =>
      `${type} is ${status} since ${lastTransitionTime}: ${message === '' ? spacedWords(reason) : message}`,
  );
}

function notReported(controller: string): string {
  return `no controller has reported on it yet: is "sluice up" running, and the controller ${controller} not disabled?`;
}
