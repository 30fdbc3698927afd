import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { expectPublished } from '../support/expect-published.ts';
import { SHORT_LEASE } from '../support/kept-installation.ts';
import { runLifecycle, type Step } from '../support/package-lifecycle.ts';
import { PatientClient } from '../support/patient-client.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { useInstallation } from '../support/use-installation.ts';

const SEED = Number(process.env.SLUICE_SEED ?? randomInt(2 ** 31));
const LIFECYCLES = Number(process.env.SLUICE_LIFECYCLES ?? 500);
const KILLS = Number(process.env.SLUICE_KILLS ?? 50);
/** Packages that are worked on at the same time. */
const LANES = 8;
/** One publication of the package, and then three drafts of it at once. */
const WORKSPACES = ['w1', 'w2', 'w3', 'w4'];
/** The most acknowledged steps, and milliseconds, between the moment when a leader is ready and its end. */
const MAX_STEPS = 30;
const MAX_LIFE_MS = 3000;
/** Milliseconds of the moment of a kill between two steps. */
const MAX_LATER_MS = 40;

const installation = useInstallation({ options: SHORT_LEASE });

test(`the leader is killed ${KILLS} times during ${LIFECYCLES} lifecycles: each acknowledged step is there once`, async () => {
  console.log(`leader-kills: seed ${SEED}`);
  const random = randomNumbers(SEED);
  await installation.current.register('default');
  const packages = Array.from({ length: Math.ceil(LIFECYCLES / WORKSPACES.length) }, (_, index) => `p${index}`);
  const acknowledged = new Map<string, Step>();
  const begin = Date.now();
  const client = new PatientClient(installation.current.admin);
  const queue = packages.entries();
  let kills = 0;
  let steps = 0;

  const lane = async () => {
    for (const [index, packageName] of queue) {
      // The work lasts for all kills.
      while (kills < Math.floor((index * (KILLS + 1)) / packages.length)) await delay(20);
      const run = (workspaceName: string, from?: string) =>
        runLifecycle({
          ...{ client, namespace: 'default', repository: 'packages', packageName, workspaceName },
          ...(from === undefined ? {} : { from }),
          onStep: (step) => {
            steps += 1;
            acknowledged.set(`${packageName}/${workspaceName}`, step);
          },
        });
      const [first = '', ...others] = WORKSPACES;
      await run(first);
      await Promise.all(others.map((workspace) => run(workspace, first)));
    }
  };
  const load = Promise.all(Array.from({ length: LANES }, lane));
  let done = false;
  const watched = load.finally(() => {
    done = true;
  });
  watched.catch(() => undefined);

  const takeovers: number[] = [];
  let last = await installation.current.whenReady();
  while (kills < KILLS && !done) {
    const [end, target] = [Date.now() + MAX_LIFE_MS, steps + random() * MAX_STEPS];
    while (steps < target && Date.now() < end) await delay(5);
    await delay(random() * MAX_LATER_MS);
    last.kill('SIGKILL');
    kills += 1;
    const killedMs = Date.now();
    last = await installation.current.whenReady(last);
    takeovers.push(Date.now() - killedMs);
  }
  await watched;
  const seconds = Math.round((Date.now() - begin) / 1000);
  const sorted = takeovers.sort((a, b) => a - b);
  console.log(
    `leader-kills: ${kills} kills, ${acknowledged.size} lifecycles in ${seconds} s; takeovers: median ${sorted[sorted.length >> 1]} ms, ` +
      `longest ${sorted.at(-1)} ms; failed attempts: ${JSON.stringify(Object.fromEntries(client.failures))}`,
  );
  expect(kills).toBe(KILLS);
  expect([...new Set(acknowledged.values())]).toEqual(['published']);
  await expectPublished(installation.current, [...acknowledged.keys()]);
});
