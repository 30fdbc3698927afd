import { Cron } from 'croner';
import { Temporal } from 'temporal-polyfill';

/**
 * A schedule of five fields in a time zone. croner has the calendar, Temporal the time zones: croner's own search in a time zone drops or
 * repeats starts with `*` or `/` when the clocks change, and takes several times as long.
 */
export interface Schedule {
  /**
   * The first start after a time, in milliseconds since the epoch; undefined if there is none. A start at a time of day that the clock shows
   * twice happens once, at the first; one that the clock skips is after the change. Takes some tens of microseconds, and about a
   * millisecond in the worst case.
   */
  readonly next: (time: number) => number | undefined;
}

/** No change of a clock in use is longer. */
const MAX_CHANGE_MS = 3 * 3_600_000;
/** Every kind of year. A schedule that does not start in them never does; croner would search 400 years, for up to 60 ms. */
const YEARS = { text: '2000-2027', before: new Date('1999-12-31') };
/** What the clock on the wall shows is searched as if it were UTC. */
const WALL_CLOCK = { utcOffset: 0, paused: true };

/** Throws if a field is not valid. The time zone has to be known. */
export function parseSchedule(cron: string, timeZone: string): Schedule {
  const walls = new Cron(cron, { ...WALL_CLOCK, mode: '5-part' });
  if (new Cron(`0 ${cron} ${YEARS.text}`, WALL_CLOCK).nextRun(YEARS.before) === null) return { next: () => undefined };
  const nextWall = (wall: number) => walls.nextRun(new Date(wall))?.getTime();
  return {
    next: (time) => {
      const shown = wallAt(time, timeZone);
      // Starts that the clock has just skipped may still be due.
      const skipped = Math.max(0, shown - wallAt(time - MAX_CHANGE_MS, timeZone) - MAX_CHANGE_MS);
      let first: number | undefined;
      let wall = nextWall(shown - skipped);
      while (wall !== undefined) {
        const start = instantOf(wall, timeZone);
        if (start > time && start < (first ?? Number.POSITIVE_INFINITY)) first = start;
        // A start after the skipped hour can be before one in it.
        if (first !== undefined && wall >= wallAt(first, timeZone)) break;
        wall = nextWall(wall);
      }
      return first;
    },
  };
}

const zoned = (time: number, timeZone: string) =>
  Temporal.Instant.fromEpochMilliseconds(Math.floor(time)).toZonedDateTimeISO(timeZone);

/** What the clock shows at a time, as if it were UTC: milliseconds since the epoch. */
function wallAt(time: number, timeZone: string): number {
  return time + zoned(time, timeZone).offsetNanoseconds / 1_000_000;
}

/** The time at which the clock shows a value: the first one of two, and after the change if the clock skips the value. */
function instantOf(wall: number, timeZone: string): number {
  return zoned(wall, 'UTC').toPlainDateTime().toZonedDateTime(timeZone).epochMilliseconds;
}
