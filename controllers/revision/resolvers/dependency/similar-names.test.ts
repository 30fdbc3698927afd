import { expect, test } from 'vitest';
import { ManualClock } from '../../../../src/foundation/time/manual-clock.ts';
import { SimilarNames } from './similar-names.ts';

test('names of the namespace, without the consumer, which are looked for now and then, among so many', () => {
  const clock = new ManualClock();
  let lists = 0;
  const row = (name: string, namespace = 'a') => ({
    namespace,
    key: { repository: 'apps', package: name, workspace: 'v1' },
  });
  const rows = [
    row('web-shop'),
    row('webshop'),
    row('webshap', 'b'),
    ...Array.from({ length: 2000 }, (_, at) => row(`p${at}`)),
  ];
  rows.push(row('webshup'));
  const store = {
    list: () => {
      lists += 1;
      return rows;
    },
  } as never;
  const names = new SimilarNames({ store, clock });
  const of = (consumer: string) => names.of('webshopp', row(consumer) as never);
  expect(of('other')).toEqual(['webshop', 'web-shop']);
  expect(of('webshop')).toEqual(['web-shop']);
  expect(lists).toBe(1);
  clock.advance(600_000);
  expect(of('web-shop')).toEqual(['webshop']);
  expect(lists).toBe(2);
});
