//! A naive tree in memory: the expected results of all models.

use std::collections::BTreeMap;

use keyloom_trees::{InsertAt, NestedNode, NodeId, OnDelete, TreeError};

use super::operations::Operation;

/// The requirements of a model beyond the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Siblings have different names.
    pub unique_names: bool,
    /// Siblings are sorted by name, so that only sorted places are valid.
    pub ordered_by_name: bool,
    /// The number of nodes that a damaged entry may destroy.
    pub cost: Cost,
    /// The entry that defines the encoding of all others, if there is one. Damage may turn its
    /// format into a newer one.
    pub definition: Option<&'static str>,
}

/// The number of nodes that a damaged entry may destroy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// At most this number.
    Nodes(usize),
    /// The nodes with a damaged byte in the entry, and at most this number more.
    DamagedAnd(usize),
}

#[allow(dead_code, reason = "models come one by one")]
impl Rules {
    /// No requirements.
    pub const NONE: Self = Self {
        unique_names: false,
        ordered_by_name: false,
        cost: Cost::Nodes(1),
        definition: None,
    };
    /// Siblings have different names.
    pub const UNIQUE_NAMES: Self = Self { unique_names: true, ..Self::NONE };
    /// Siblings have different names, and are sorted by them.
    pub const ORDERED_BY_NAME: Self =
        Self { unique_names: true, ordered_by_name: true, ..Self::NONE };
    /// No requirements, and all nodes in one entry.
    pub const DOCUMENT: Self =
        Self { cost: Cost::DamagedAnd(1), definition: Some("head"), ..Self::NONE };
    /// No requirements; several nodes per entry, and nodes that span entries.
    pub const IN_PIECES: Self = Self { cost: Cost::Nodes(6), ..Self::DOCUMENT };
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub value: u32,
    pub parent: Option<NodeId>,
    pub children: Vec<NodeId>,
}

#[derive(Clone, Debug)]
pub struct Oracle {
    rules: Rules,
    /// The name of the tree in errors.
    tree: String,
    nodes: BTreeMap<NodeId, Node>,
    roots: Vec<NodeId>,
}

type Outcome<T> = Result<T, TreeError>;

impl Oracle {
    pub fn new(rules: Rules, tree: String) -> Self {
        Self { rules, tree, nodes: BTreeMap::new(), roots: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Applies an operation and returns its result. A refused operation changes nothing.
    pub fn perform(&mut self, operation: &Operation) -> Outcome<u64> {
        let before = self.clone();
        let outcome = self.try_to(operation);
        if outcome.is_err() {
            *self = before;
        }
        outcome
    }

    fn try_to(&mut self, operation: &Operation) -> Outcome<u64> {
        match operation {
            Operation::Insert { id, name, value, place } => {
                self.insert(*id, name, *value, *place)?
            }
            Operation::Rename { id, name } => self.rename(*id, name)?,
            Operation::SetValue { id, value } => {
                self.node(*id)?;
                self.nodes.get_mut(id).unwrap().value = *value;
            }
            Operation::Move { id, place } => self.move_to(*id, *place)?,
            Operation::DeleteSubtree { id } => return self.delete_subtree(*id),
            Operation::DeleteNode { id, orphans } => self.delete_node(*id, *orphans)?,
            Operation::Load { parent, trees } => self.load(*parent, trees)?,
        }
        Ok(0)
    }

    fn insert(&mut self, id: NodeId, name: &str, value: u32, place: InsertAt) -> Outcome<()> {
        if self.nodes.contains_key(&id) {
            return Err(TreeError::NodeExists { tree: self.tree.clone(), node: id });
        }
        let (parent, index) = self.locate(None, name, place)?;
        self.free_name(parent, name, &[])?;
        let node = Node { name: name.into(), value, parent, children: Vec::new() };
        self.nodes.insert(id, node);
        self.siblings_mut(parent).insert(index, id);
        Ok(())
    }

    fn rename(&mut self, id: NodeId, name: &str) -> Outcome<()> {
        let parent = self.node(id)?.parent;
        self.free_name(parent, name, &[id])?;
        self.nodes.get_mut(&id).unwrap().name = name.into();
        if self.rules.ordered_by_name {
            self.move_to(id, InsertAt::Sorted(parent))?;
        }
        Ok(())
    }

    fn move_to(&mut self, id: NodeId, place: InsertAt) -> Outcome<()> {
        let Node { name, parent: old, .. } = self.node(id)?.clone();
        if matches!(place, InsertAt::Before(sibling) | InsertAt::After(sibling) if sibling == id) {
            return Ok(());
        }
        let (parent, index) = self.locate(Some(id), &name, place)?;
        self.free_name(parent, &name, &[id])?;
        self.siblings_mut(old).retain(|sibling| *sibling != id);
        self.siblings_mut(parent).insert(index, id);
        self.nodes.get_mut(&id).unwrap().parent = parent;
        Ok(())
    }

    fn delete_subtree(&mut self, id: NodeId) -> Outcome<u64> {
        let parent = self.node(id)?.parent;
        let subtree: Vec<NodeId> =
            self.descendants(Some(id))?.into_iter().map(|(_, id)| id).collect();
        self.siblings_mut(parent).retain(|sibling| *sibling != id);
        for node in &subtree {
            self.nodes.remove(node);
        }
        Ok(subtree.len() as u64)
    }

    fn delete_node(&mut self, id: NodeId, orphans: OnDelete) -> Outcome<()> {
        let Node { parent, children, .. } = self.node(id)?.clone();
        let adopter = match orphans {
            OnDelete::Reparent => parent,
            OnDelete::Promote => None,
        };
        for child in &children {
            // The node itself is excluded, with its name.
            let name = &self.nodes[child].name;
            self.free_name(adopter, name, &[&children[..], &[id]].concat())?;
        }
        let position = self.siblings(parent).iter().position(|sibling| *sibling == id).unwrap();
        self.siblings_mut(parent).remove(position);
        self.nodes.remove(&id);
        let at = match orphans {
            OnDelete::Reparent => position,
            OnDelete::Promote => self.roots.len(),
        };
        self.siblings_mut(adopter).splice(at..at, children.iter().copied());
        for child in &children {
            self.nodes.get_mut(child).unwrap().parent = adopter;
        }
        if self.rules.ordered_by_name {
            let mut sorted = self.siblings(adopter).to_vec();
            sorted.sort_by_key(|child| &self.nodes[child].name);
            *self.siblings_mut(adopter) = sorted;
        }
        Ok(())
    }

    fn load(&mut self, parent: Option<NodeId>, trees: &[NestedNode<u32>]) -> Outcome<()> {
        for tree in trees {
            let mut path = Vec::new();
            for (depth, node) in tree.preorder() {
                path.truncate(depth as usize);
                let below = path.last().copied().or(parent);
                let place = match self.rules.ordered_by_name {
                    true => InsertAt::Sorted(below),
                    false => InsertAt::Last(below),
                };
                self.insert(node.id, &node.name, node.value, place)?;
                path.push(node.id);
            }
        }
        Ok(())
    }

    /// The parent of a position, and the number of the other children before it.
    fn locate(
        &self,
        moved: Option<NodeId>,
        name: &str,
        place: InsertAt,
    ) -> Outcome<(Option<NodeId>, usize)> {
        let (target, parent) = match place {
            InsertAt::First(parent)
            | InsertAt::Last(parent)
            | InsertAt::At(parent, _)
            | InsertAt::Sorted(parent) => {
                self.siblings_of(parent)?;
                (parent, parent)
            }
            InsertAt::Before(sibling) | InsertAt::After(sibling) => {
                (Some(sibling), self.node(sibling)?.parent)
            }
        };
        if let (Some(node), Some(target)) = (moved, target)
            && (node == target || self.ancestors(target)?.contains(&node))
        {
            return Err(TreeError::BelowItself { node, target });
        }
        let is_other = |child: &&NodeId| Some(**child) != moved;
        let others: Vec<NodeId> = self.siblings(parent).iter().filter(is_other).copied().collect();
        let of = |sibling| others.iter().position(|other| *other == sibling).unwrap();
        let index = match place {
            InsertAt::First(_) => 0,
            InsertAt::Last(_) => others.len(),
            InsertAt::At(_, position) if position <= others.len() as u64 => position as usize,
            InsertAt::At(_, position) => {
                let children = others.len() as u64;
                return Err(TreeError::NoSuchPosition { parent, position, children });
            }
            InsertAt::Sorted(_) => {
                let greater = |other: &NodeId| *self.nodes[other].name > *name;
                others.iter().position(greater).unwrap_or(others.len())
            }
            InsertAt::Before(sibling) => of(sibling),
            InsertAt::After(sibling) => of(sibling) + 1,
        };
        Ok((parent, index))
    }

    fn free_name(&self, parent: Option<NodeId>, name: &str, not: &[NodeId]) -> Outcome<()> {
        let has_it = |child: &&NodeId| !not.contains(child) && self.nodes[child].name == name;
        match self.siblings(parent).iter().find(has_it) {
            Some(taken_by) if self.rules.unique_names => {
                Err(TreeError::NameTaken { parent, name: name.into(), taken_by: *taken_by })
            }
            _ => Ok(()),
        }
    }

    // ---- queries
    // ------------------------------------------------------------------------------------------

    pub fn find(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    pub fn node(&self, id: NodeId) -> Outcome<&Node> {
        self.find(id).ok_or_else(|| TreeError::UnknownNode { tree: self.tree.clone(), node: id })
    }

    pub fn siblings_of(&self, parent: Option<NodeId>) -> Outcome<&[NodeId]> {
        parent.map_or(Ok(&self.roots), |parent| Ok(&self.node(parent)?.children))
    }

    fn siblings(&self, parent: Option<NodeId>) -> &[NodeId] {
        self.siblings_of(parent).unwrap()
    }

    fn siblings_mut(&mut self, parent: Option<NodeId>) -> &mut Vec<NodeId> {
        match parent {
            None => &mut self.roots,
            Some(parent) => &mut self.nodes.get_mut(&parent).unwrap().children,
        }
    }

    pub fn ancestors(&self, id: NodeId) -> Outcome<Vec<NodeId>> {
        let mut ancestors = Vec::new();
        let mut next = self.node(id)?.parent;
        while let Some(parent) = next {
            ancestors.push(parent);
            next = self.nodes[&parent].parent;
        }
        Ok(ancestors)
    }

    /// Nodes in depth-first order with their depths: 0 for the node itself, 1 for the roots.
    pub fn descendants(&self, from: Option<NodeId>) -> Outcome<Vec<(u32, NodeId)>> {
        let mut open: Vec<(u32, NodeId)> = match from {
            Some(id) => self.node(id).map(|_| vec![(0, id)])?,
            None => self.roots.iter().rev().map(|root| (1, *root)).collect(),
        };
        let mut visits = Vec::new();
        while let Some((depth, id)) = open.pop() {
            visits.push((depth, id));
            open.extend(self.nodes[&id].children.iter().rev().map(|child| (depth + 1, *child)));
        }
        Ok(visits)
    }

    pub fn nested(&self, id: NodeId) -> NestedNode<u32> {
        let Node { name, value, children, .. } = &self.nodes[&id];
        let children = children.iter().map(|child| self.nested(*child)).collect();
        NestedNode { id, name: name.clone(), value: *value, children }
    }

    pub fn forest(&self) -> Vec<NestedNode<u32>> {
        self.roots.iter().map(|root| self.nested(*root)).collect()
    }
}
