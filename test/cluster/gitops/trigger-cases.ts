import { expect, test } from 'vitest';
import { configMap, deployment, type Scenario } from '../support/gitops/scenario.ts';
import { isHealthy, readTarget, type TriggerSetup } from '../support/gitops/triggers.ts';

/** Milliseconds: the resolution of the figures. */
const POLL_MS = 20;

/** A sync starts with the push, although the engine polls once in an hour, and it does not where there is no trigger. */
export function triggerCases(of: () => Scenario, setup: () => TriggerSetup): void {
  // Alone, since it measures.
  for (const trigger of ['Annotation', 'Webhook'] as const)
    test(`trigger ${trigger}: a sync starts after each push, and without a trigger it does not`, {
      concurrent: false,
    }, async () => {
      const site = of();
      const { hookFindsNewPackages } = setup();
      const name = `trigger-${trigger.toLowerCase()}`;
      const [known, added] = [`${name}-known`, `${name}-added`];
      const triggered = await readTarget(site, setup(), { name, packages: [known, added], trigger });
      // Packages of its own: two Applications with the same objects would revert each other.
      const silentOf = (path: string) => `${path}-silent`;
      const silent = await readTarget(site, setup(), { name: silentOf(name), packages: [known, added].map(silentOf) });
      const files = (path: string, value: string) => ({
        'cm.yaml': configMap(path, 'default', value),
        'main.yaml': deployment(path, {}, { replicas: Number(value) }),
      });
      await site.publish(triggered, known, 'v1', files(known, '1'), [`${known} v1`]);
      await site.synced(triggered, known);
      const silentKnown = silentOf(known);
      await site.publish(silent, silentKnown, 'v1', files(silentKnown, '1'), [`${silentKnown} v1`]);
      await site.synced(silent, silentKnown);

      await follow(known, 'v2', [`${known} v2`], `${known}, upgrade`);
      if (trigger === 'Annotation' || hookFindsNewPackages)
        await follow(added, 'v1', [`${known} v2`, `${added} v1`], `${added}, new in the target`);
      // It only lacked a trigger.
      await site.synced(silent, silentKnown);

      function silentRevision(revision: string): string {
        const [path = '', number] = revision.split(' ');
        return `${silentOf(path)} ${number}`;
      }

      /** Publishes to both targets, and waits for the engine without triggering it. */
      async function follow(path: string, workspace: string, all: readonly string[], title: string): Promise<void> {
        const { author } = site.world;
        const silentPath = silentOf(path);
        const before = await site.engine.report(silent, silentPath);
        await site.publish(silent, silentPath, workspace, files(silentPath, '2'), all.map(silentRevision));
        const draft = await author.draft(path, workspace, files(path, '2'));
        await author.propose(draft);
        const start = Date.now();
        const steps: string[] = [];
        const reach = (step: string) =>
          steps.push(`  ${((Date.now() - start) / 1000).toFixed(2).padStart(6)} s  ${step}`);
        await author.approve(draft);
        reach('published');
        const commit = await site.world.delivered(name, all);
        reach('delivered');
        let seen: unknown;
        const last = async (what: string, holds: () => Promise<boolean>) => {
          const describe = () => `${site.engine.name}, ${trigger}: ${title}: ${what}: ${JSON.stringify(seen)}`;
          await site.eventually(holds, describe, POLL_MS);
          reach(what);
        };
        await last('healthy in the report of the engine', async () => {
          const report = await site.engine.report(triggered, path);
          seen = report;
          return report.synced === commit && report.healthy;
        });
        await last('Healthy in the status of the target', async () => {
          const { status } = await site.world.targetObject(name);
          seen = status;
          return isHealthy(status, commit);
        });
        expect(await site.data('default', path)).toEqual({ value: '2' });

        const after = await site.engine.report(silent, silentPath);
        expect(after.seen).toBe(before.seen);
        expect(after.seen).not.toBe(site.world.headOf(silent));
        reach('without a trigger: an earlier commit is not read');
        console.log(
          `${site.engine.name}, trigger ${trigger}: package ${title}, from the approval\n${steps.join('\n')}`,
        );
      }
    });
}
