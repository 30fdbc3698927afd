import { env } from 'node:process';

/**
 * The places of a scenario, numbered from 1, at which a process is killed: so many, spread over it, from a random one on, so that the runs of a
 * day meet all of them. `SLUICE_KILLS` is another number for each way, and `all` of them are minutes more.
 */
export function killPlaces(places: number, kills: number): readonly number[] {
  const wanted = env.SLUICE_KILLS === 'all' ? places : Number(env.SLUICE_KILLS ?? kills);
  const count = Math.min(wanted, places);
  const shift = Math.random();
  return Array.from({ length: count }, (_, kill) => 1 + Math.floor(((kill + shift) * places) / count));
}
