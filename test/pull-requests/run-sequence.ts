import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { Settings, Step } from './actions.ts';
import { Driver } from './driver.ts';
import { Invariants } from './invariants.ts';

/** Without a proposal little happens. */
const BEGIN: Step = { action: { do: 'propose', of: { package: 'app', workspace: 'w1' } }, works: 'later' };

/** Takes the steps, and checks what has to hold. `choice`: who merges at the end, and how. */
export async function runSequence(
  renderer: Renderer,
  config: Settings,
  steps: readonly Step[],
  choice: number,
): Promise<void> {
  const driver = await Driver.open(config, renderer);
  const rules = new Invariants(driver);
  try {
    for (const one of [BEGIN, ...steps]) {
      await driver.take(one);
      rules.observe();
    }
    await rules.settle();
    await rules.check();
    await rules.checkRestart();
    await rules.check();
    if (await rules.checkGreen(choice)) {
      await rules.settle();
      await rules.check();
    }
  } finally {
    await driver.close();
  }
}
