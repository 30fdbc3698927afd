/** Fewer runs than this find too little to be worth their start. */
const MIN_RUNS = 10;
const FRACTION = 200;

/**
 * True where properties are tried with all their runs. Only then may a test require that its random cases came everywhere: few runs may
 * miss what is rare.
 */
export const ALL_RUNS = process.env.SLUICE_RUNS === 'full';

/**
 * How often a property is tried: `full` times by `npm run test:property`, which sets `SLUICE_RUNS=full`, and a two-hundredth of it in the
 * quick suite, but no less than `least`: a smaller number where each run starts processes or writes repositories. Every property with
 * a number of runs gets it from this function.
 */
export function runs(full: number, least = MIN_RUNS): number {
  if (ALL_RUNS) return full;
  return Math.min(full, Math.max(least, Math.ceil(full / FRACTION)));
}
