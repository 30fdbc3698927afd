import { Gauge, type Registry } from 'prom-client';

export interface DeploymentCount {
  readonly namespace: string;
  readonly target: string;
  readonly condition: 'Synced' | 'Healthy';
  readonly status: string;
  readonly count: number;
}

/** Adds the number of packages of each target by what its engine reports. */
export function observeDeployments(registry: Registry, counts: () => Iterable<DeploymentCount>): void {
  new Gauge({
    name: 'sluice_target_packages',
    help: 'Packages of delivery targets that are read back, by condition (Synced, Healthy) and status (True, False, Unknown).',
    labelNames: ['namespace', 'target', 'condition', 'status'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { count, ...labels } of counts()) this.set(labels, count);
    },
  });
}
