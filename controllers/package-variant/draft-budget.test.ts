import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { DraftBudget } from './draft-budget.ts';

const SET = 'PackageVariantSet';

test.each(['update', 'delete'])(
  'the variants cannot be listed while an event (%s) of their set arrives',
  async (type) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const set = (maxDrafts: number) => ({
      ...{ kind: SET, metadata: { name: 'fleet', uid: 'u', generation: maxDrafts }, spec: { maxDrafts } },
    });
    const listed = Promise.withResolvers<never>();
    const listing = Promise.withResolvers<void>();
    const client = {
      find: async () => set(1),
      list: () => {
        listing.resolve();
        return listed.promise;
      },
    };
    const budget = new DraftBudget(client as never, () => false);
    let notify: (event: unknown) => void = () => undefined;
    const addHandler = (handler: typeof notify) => {
      notify = handler;
      return () => undefined;
    };
    budget.source.start({ enqueue: () => undefined, informer: () => ({ addHandler }) } as never);
    const metadata = { ownerReferences: [{ kind: SET, name: 'fleet', uid: 'u' }] };
    const requested = budget.request({ metadata: { name: 'v', namespace: 'default', ...metadata } } as never);
    await listing.promise;
    notify({ type, old: set(1), object: set(2) });
    listed.reject(new Error('the API server is down'));
    await expect(requested).rejects.toThrow('the API server is down');
    await setImmediate();
    expect(unhandled).toEqual([]);
  },
);
