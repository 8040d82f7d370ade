// What turns used: tokens and cost. Promises: what is not reported is not guessed. Must not know: elements.

import { formatCost, formatCount } from './format.js';

const COUNTED = ['inputTokens', 'cacheReadTokens', 'outputTokens'];

/** The sums of what some turns report. @param {any[]} usages */
function addUp(usages) {
  /** @type {any} */
  const all = {};
  for (const usage of usages) {
    // Agents that do not count the turn report its last call.
    const sums = usage._meta?.turn ?? usage;
    for (const field of COUNTED) if (Number.isFinite(sums[field])) all[field] = (all[field] ?? 0) + sums[field];
    const cost = usage._meta?.cost;
    // Amounts of another currency cannot be added up: the first one counts.
    if (typeof cost?.amount === 'number' && (all.cost ?? cost).currency === cost.currency) all.cost = { ...cost, amount: (all.cost?.amount ?? 0) + cost.amount };
  }
  return all;
}

/** How much of its window the model last had to look at, in percent; none if either is not known. @param {any[]} usages @param {any[]} models those of the agent */
export function contextPercent(usages, models) {
  const last = usages.findLast((usage) => Number.isFinite(usage._meta?.contextUsed ?? usage.inputTokens));
  const size = last?._meta?.contextSize ?? models.find((one) => one.id === last?.model)?.maxContextWindow;
  const used = last?._meta?.contextUsed ?? last?.inputTokens + (last?.outputTokens ?? 0);
  return size > 0 ? Math.min(999, Math.ceil((used * 100) / size)) : null;
}

/** Tokens and cost of some turns, as far as they are known. @param {any[]} usages */
export function describeUsage(usages) {
  const { inputTokens, cacheReadTokens, outputTokens, cost } = addUp(usages);
  const cached = cacheReadTokens ? ` (${formatCount(cacheReadTokens)} cached)` : '';
  const tokens = inputTokens === undefined ? '' : `${formatCount(inputTokens)} in${cached}, ${formatCount(outputTokens ?? 0)} out`;
  return [tokens, formatCost(cost)].filter(Boolean).join(' · ');
}
