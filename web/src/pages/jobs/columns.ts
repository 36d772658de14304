/** What a row shows, and from which width of the list on. Heads and cells share these, so that they stay in line. */

export const COLUMNS = {
  recipe: { head: "Recipe", cell: "min-w-0 flex-[1_1_120px] truncate" },
  id: { head: "Job", cell: "w-[104px] shrink-0" },
  caller: { head: "Caller", cell: "w-[84px] shrink-0 truncate @max-[1040px]:hidden" },
  progress: { head: "Progress", cell: "w-[138px] shrink-0" },
  duration: { head: "Duration", cell: "w-[76px] shrink-0 @max-[940px]:hidden" },
  age: { head: "Age", cell: "w-[72px] shrink-0" },
  retry: { head: "Retry of", cell: "w-[92px] shrink-0 @max-[1100px]:hidden" },
  note: { head: "Note", cell: "min-w-0 flex-[3_1_180px] truncate @max-[720px]:hidden" },
} as const;

export const STATE_CELL = "w-[118px] shrink-0";
export const MARK_CELL = "w-5 shrink-0";
export const MENU_CELL = "w-7 shrink-0";

/** How high a row is: it is drawn where its number says, so this must be what the style says. */
export const ROW_PX = { cosy: 34, compact: 27, card: 84 } as const;
