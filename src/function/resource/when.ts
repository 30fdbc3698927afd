import type { Expression } from '../../expression/expression.ts';

/** Reads a condition `when`. Rejects with InvalidInput. Few pipelines have one, and the CEL library is large. */
export async function readWhen(when: string): Promise<Expression> {
  const { compileExpression } = await import('../../expression/expression.ts');
  return compileExpression(when, ['resources']);
}
