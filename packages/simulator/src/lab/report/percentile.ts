/** Nearest rank of sorted values; 0 where there are none. */
export function percentile(sorted: Float64Array, percent: number): number {
  if (sorted.length === 0) return 0;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1))]!;
}
