import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { filesOf, publish, publishNext } from '../support/delivery.ts';
import { fixture } from '../support/fixture.ts';
import { fsck, git as gitCli } from '../support/git/git-cli.ts';
import { startGitServer } from '../support/git/git-server.ts';
import { folderTrust } from '../support/trust.ts';

const VICTIM = fileURLToPath(new URL('delivery-victim.ts', import.meta.url));
const MAX_PLACES = 40;

interface Run {
  readonly killed: boolean;
  readonly output: string;
}

test('a kill between any two steps of a delivery loses nothing and repeats nothing', async () => {
  const clock = systemClock;
  const home = await fixture(clock);
  const folder = join(home.folder, 'victim');
  mkdirSync(folder);
  const world = await fixture(clock, await folderTrust(join(folder, 'trust')));
  const packages = await world.register('apps');
  const site = await home.bare('site');
  const server = await startGitServer({ root: dirname(site) });
  try {
    const web = await publish(world, 'web');
    expect(await run(0)).toMatchObject({ killed: false });
    const first = gitCli(site, ['rev-parse', 'main']);
    await publishNext(world, web, 'w2', '2');
    await publish(world, 'db');
    const saved = join(home.folder, 'saved');
    cpSync(folder, join(saved, 'victim'), { recursive: true });
    cpSync(site, join(saved, 'site.git'), { recursive: true });
    const complete = await run(0);
    const places = Number(/^places (\d+)/m.exec(complete.output)?.[1]);
    expect(places, complete.output).toBeGreaterThan(8);
    expect(places).toBeLessThan(MAX_PLACES);
    const delivered = gitCli(site, ['rev-parse', 'main^{tree}']);

    for (let place = 1; place <= places; place += 1) {
      for (const name of ['victim', 'site.git']) {
        rmSync(join(home.folder, name), { recursive: true });
        cpSync(join(saved, name), join(home.folder, name), { recursive: true });
      }
      expect(await run(place), `place ${place}`).toMatchObject({ killed: true });
      // What others see at any time: the state before, or the whole delivery.
      if (gitCli(site, ['rev-parse', 'main']) !== first)
        expect(gitCli(site, ['rev-parse', 'main^{tree}']), `place ${place}`).toBe(delivered);
      const after = await run(0);
      expect(after.killed, after.output).toBe(false);
      expect(gitCli(site, ['rev-parse', 'main^{tree}']), `place ${place}`).toBe(delivered);
      expect(gitCli(site, ['rev-parse', 'main^']), `place ${place}`).toBe(first);
      const status = JSON.parse(readFileSync(join(folder, 'status.json'), 'utf8')) as object;
      expect(status).toMatchObject({
        lastCommit: gitCli(site, ['rev-parse', 'main']),
        packageCount: 2,
      });
    }
    fsck(site);
    expect(filesOf(site)).toHaveLength(4);
  } finally {
    await server.close();
    await world[Symbol.asyncDispose]();
    await home[Symbol.asyncDispose]();
  }

  async function run(place: number): Promise<Run> {
    const temporary = join(home.folder, 'tmp');
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary);
    const child = spawn(process.execPath, [VICTIM, folder, packages, `${server.url}/site.git`, `${place}`], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: temporary },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        if (/^here$/m.test(output)) child.kill('SIGKILL');
      });
    await once(child, 'close');
    if (child.signalCode === null && child.exitCode !== 0) throw new Error(`the process failed: ${output}`);
    return { killed: child.signalCode === 'SIGKILL', output };
  }
});
