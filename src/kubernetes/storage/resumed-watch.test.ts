import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock, settle } from '../../foundation/time/manual-clock.ts';
import type { WatchEvent } from '../../resource/storage/storage.ts';
import { resumedWatch } from './resumed-watch.ts';

/** What one watch delivers before it ends: versions of bookmarks, and an error at its end. */
type Script = readonly (string | SluiceError)[];

/** A resumed watch over watches that deliver what the scripts say; the last one is repeated. */
function resume(scripts: readonly Script[], present = '9') {
  const clock = new ManualClock();
  const end = new AbortController();
  const opened: string[] = [];
  async function* watch(from: string): AsyncGenerator<WatchEvent<never>> {
    const script = scripts[Math.min(opened.length, scripts.length - 1)] ?? [];
    opened.push(from);
    for (const step of script) {
      if (step instanceof SluiceError) throw step;
      yield { type: 'BOOKMARK', resourceVersion: step };
    }
  }
  const options = { watch, present: async () => present, clock, signal: end.signal, random: () => 0 };
  const events = resumedWatch<never>({ ...options, resourceVersion: '1' })[Symbol.asyncIterator]();
  const next = async () => {
    const { value } = await events.next();
    return value?.type === 'BOOKMARK' ? value.resourceVersion : value;
  };
  return { clock, end, opened, next };
}

const silence = new SluiceError('Timeout', 'nothing for 90 s');

describe('a resumed watch', () => {
  test('goes on after the last version that was delivered', async () => {
    const { next, opened } = resume([['2', '3'], ['4'], ['5']]);
    expect([await next(), await next(), await next(), await next()]).toEqual(['2', '3', '4', '5']);
    expect(opened).toEqual(['1', '3', '4']);
  });

  test('requests less and less often a server that ends each watch at once, and stops with its signal', async () => {
    const { next, opened, clock, end } = resume([[]]);
    const pending = next();
    await settle();
    expect(opened).toHaveLength(1);
    await clock.advanceAsync(10_000);
    const after10s = opened.length;
    expect(after10s).toBeLessThan(10);
    await clock.advanceAsync(600_000);
    expect(opened.length - after10s).toBeLessThan(45);
    end.abort();
    expect(await pending).toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  test('begins again after a silence, with a bookmark that shows that the server works', async () => {
    const { next, opened } = resume([['2', silence], ['7']]);
    expect([await next(), await next(), await next()]).toEqual(['2', '2', '7']);
    expect(opened).toEqual(['1', '2']);
  });

  test('is Expired where the server went back', async () => {
    const { next } = resume([['12', silence]], '11');
    expect(await next()).toBe('12');
    await expect(next()).rejects.toMatchObject({ code: 'Expired', message: expect.stringContaining('backup') });
  });

  test('throws every other error', async () => {
    for (const code of ['Unavailable', 'Expired', 'Unsupported', 'TooManyRequests'] as const) {
      const { next } = resume([['2', new SluiceError(code, 'failed')]]);
      expect(await next()).toBe('2');
      await expect(next()).rejects.toMatchObject({ code });
    }
  });
});
