import type { Source } from '../../src/controller/source.ts';
import { type AnalysisRun, analysisRunKind } from '../../src/resource/kinds/sluice/wave/analysis-run.ts';
import { analysisTemplateKind } from '../../src/resource/kinds/sluice/wave/analysis-template.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { isCompleted } from '../../src/rollout/analysis/step.ts';

/** Events of runs wake them; an event of a template wakes the runs of it that have not ended. */
export function runSources(): Source<ObjectKey>[] {
  /** Runs that have not ended, by the key of their template. */
  const open = new Map<string, Map<string, ObjectKey>>();
  const templateKey = ({ metadata: { namespace }, spec }: Stored<AnalysisRun>) =>
    keyText({ ...(namespace === undefined ? {} : { namespace }), name: spec.templateRef.name });
  const remove = (run: Stored<AnalysisRun>) => {
    const runs = open.get(templateKey(run));
    runs?.delete(keyText(keyOf(run)));
    if (runs?.size === 0) open.delete(templateKey(run));
  };
  return [
    {
      start: ({ informer, enqueue }) =>
        informer(analysisRunKind).addHandler((event) => {
          if (event.type === 'update') remove(event.old);
          const { object } = event;
          const key = keyOf(object);
          if (event.type === 'delete' || isCompleted(object.status?.phase)) remove(object);
          else {
            const runs = open.get(templateKey(object)) ?? new Map<string, ObjectKey>();
            open.set(templateKey(object), runs.set(keyText(key), key));
          }
          // The controller writes the status itself, and knows when the next measurement is due.
          if (event.type !== 'update' || event.old.metadata.generation !== object.metadata.generation) enqueue(key);
        }),
    },
    {
      start: ({ informer, enqueue }) =>
        informer(analysisTemplateKind).addHandler(({ object }) => {
          for (const key of open.get(keyText(keyOf(object)))?.values() ?? []) enqueue(key);
        }),
    },
  ];
}
