import { type DeliveredPackage, deliveredCount } from '../../delivery/delivered/delivered-package.ts';
import { rollbackText } from '../../delivery/rollback/rollback-status.ts';
import { packageKey } from '../../delivery/selection/select-revisions.ts';
import { deploymentMessage } from '../../delivery/status/revision-deployments.ts';
import {
  currentDeployment,
  currentDeploymentOf,
  deploymentOf,
  type TimedState,
} from '../../delivery/status/target-deployment.ts';
import { age } from '../../foundation/time/age.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../resource/object/condition.ts';
import type { Terminal } from '../output/terminal.ts';

export const TARGET_COLUMNS = ['Name', 'Packages', 'Delivered', 'Synced', 'Healthy', 'Since', 'Message'];
export const PACKAGE_COLUMNS = ['Target', 'Package', 'Revision', 'Synced', 'Healthy', 'Since', 'Message'];

/** The cell of a value that nothing reports. */
const NONE = '-';
const NO_ENGINE = 'without spec.engine nothing reports whether it is synced';
const NOT_REPORTED = 'no delivery was tried yet: is "sluice up" running, and the controller delivery not disabled?';
/** Rollbacks that a line names. */
const MAX_ROLLBACKS = 3;

/** One line about a target as a whole. `now` in milliseconds since the epoch. */
export function targetRow({ metadata, spec, status }: DeliveryTarget, now: number): string[] {
  const ready = findCondition(status?.conditions, 'Ready');
  const deployment = currentDeployment({ status });
  const delivered = deployment?.delivered.status ?? ready?.status ?? 'Unknown';
  const problem = ready?.status === 'True' || ready === undefined ? '' : `${ready.reason}: ${ready.message}`;
  const drifted = findCondition(status?.conditions, 'Drifted');
  const drift = drifted?.status === 'True' ? `Drifted: ${drifted.message.split('\n', 1)[0]}` : '';
  const rolledBack = (status?.rollbacks ?? []).slice(0, MAX_ROLLBACKS).map(rollbackText).join('; ');
  const report = deployment === undefined ? '' : deploymentMessage(deployment);
  const missing = spec.engine === undefined ? NO_ENGINE : 'its engine was not read yet';
  return [
    metadata.name,
    String(deliveredCount(status)),
    delivered,
    deployment?.synced.status ?? NONE,
    deployment?.healthy.status ?? NONE,
    deployment === undefined ? NONE : age(latestOf(deployment), now),
    [ready === undefined ? NOT_REPORTED : problem, drift, rolledBack, deployment === undefined ? missing : report]
      .filter((text) => text !== '')
      .join('; '),
  ];
}

/** One line for each package of a target. */
export function packageRows(
  { metadata, status }: DeliveryTarget,
  packages: readonly DeliveredPackage[],
  now: number,
  isShown: (state: { readonly isGood: boolean }) => boolean,
): string[][] {
  const deployment = currentDeploymentOf({ status }, packages);
  const rollbackOf = new Map((status?.rollbacks ?? []).map((one) => [packageKey(one), rollbackText(one)]));
  return packages.flatMap((one) => {
    const state = deployment && deploymentOf(deployment, one);
    const isGood = state?.synced.status === 'True' && state.healthy.status === 'True';
    if (!isShown({ isGood })) return [];
    const name = `${one.repository}/${one.package}`;
    const revision = `v${one.revision}`;
    if (state === undefined)
      return [[metadata.name, name, revision, NONE, NONE, NONE, rollbackOf.get(packageKey(one)) ?? '']];
    return [
      [
        metadata.name,
        name,
        revision,
        state.synced.status,
        state.healthy.status,
        age(latestOf(state), now),
        [rollbackOf.get(packageKey(one)), deploymentMessage(state)].filter(Boolean).join('; '),
      ],
    ];
  });
}

function latestOf({ synced, healthy }: { readonly synced: TimedState; readonly healthy: TimedState }): string {
  return Date.parse(synced.since) > Date.parse(healthy.since) ? synced.since : healthy.since;
}

/** Colours the columns of states. */
export function paintStates(terminal: Terminal, columns: readonly string[]) {
  const states = new Set(['Delivered', 'Synced', 'Healthy'].map((name) => columns.indexOf(name)));
  return (padded: string, column: number, value: string): string => {
    if (!states.has(column)) return padded;
    return terminal.style(value === 'True' ? 'green' : value === 'False' ? 'red' : 'yellow', padded);
  };
}
