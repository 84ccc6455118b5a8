//! What a server shows, held against what is pinned of it.

use std::sync::Arc;

use super::State;
use crate::catalog::{Block, Item, ItemKind, Pinned, Reason, Shown, View, tool::Tool};

/// What becomes of one item that was shown.
#[derive(Clone, Debug)]
pub(in crate::catalog) enum Verdict {
    /// It is as pinned; a tool with what its definition says.
    Pinned(Option<Arc<Tool>>),
    /// It is not.
    Blocked(Reason),
}

impl State {
    /// Holds what was shown against what is pinned now; notes what is blocked, and returns what of that is new.
    pub(in crate::catalog) fn judge(
        &mut self,
        view: View,
        shown: &[Shown],
    ) -> (Vec<Verdict>, Vec<Block>) {
        let pinned = self.pinned.clone().unwrap_or_default();
        let mut blocks = Vec::new();
        let verdicts = shown
            .iter()
            .map(|shown| {
                let reason = match &shown.item {
                    Ok(item) => match self.as_pinned(&pinned, item) {
                        Ok(verdict) => return verdict,
                        Err(reason) => reason,
                    },
                    Err(error) => Reason::Unusable(error.clone()),
                };
                let block = Block {
                    kind: shown.kind,
                    name: shown.name.clone(),
                    reason: reason.clone(),
                };
                if self.blocked.note(view, &block, shown.item.as_ref().ok()) {
                    blocks.push(block);
                }
                Verdict::Blocked(reason)
            })
            .collect();
        (verdicts, blocks)
    }

    /// The same of all that `view` is shown of a kind, in the place of what was known; `changes`: how often the server had
    /// said before that it changed.
    pub(in crate::catalog) fn judge_all(
        &mut self,
        view: View,
        kind: ItemKind,
        shown: &[Shown],
        changes: u64,
    ) -> (Vec<Verdict>, Vec<Block>) {
        self.blocked.begin(view, kind);
        let (verdicts, blocks) = self.judge(view, shown);
        let judged = (shown, &*verdicts);
        self.sights.learn(view, kind, judged, Some(changes));
        (verdicts, blocks)
    }

    fn as_pinned(&mut self, pinned: &Pinned, item: &Item) -> Result<Verdict, Reason> {
        let Some(item) = pinned.find(item) else {
            return Err(match pinned.named(item.kind, &item.name) {
                [] => Reason::Unreviewed,
                _ => Reason::Drifted,
            });
        };
        if item.kind != ItemKind::Tool {
            return Ok(Verdict::Pinned(None));
        }
        if let Some(tool) = self.tools.get(&item.digest) {
            return Ok(Verdict::Pinned(Some(tool.clone())));
        }
        let tool = Arc::new(Tool::read(item).map_err(Reason::Unusable)?);
        self.tools.insert(item.digest, tool.clone());
        Ok(Verdict::Pinned(Some(tool)))
    }
}
