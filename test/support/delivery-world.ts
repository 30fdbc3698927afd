import { afterEach, beforeEach } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { type Fixture, fixture } from './fixture.ts';

/** Of the test that runs. */
export let world: Fixture;
/** The path of a bare repository for targets. */
export let site: string;

/** Gives each test of a file a fixture with the repository `apps`, on a manual clock, and a bare repository for targets. */
export function useDeliveryWorld(): void {
  beforeEach(async () => {
    world = await fixture(new ManualClock());
    await world.register('apps');
    site = await world.bare('site');
  });
  afterEach(() => world[Symbol.asyncDispose]());
}
